"""The attributes and capacities of its devices show whether a ResourceSlice offers GPUs."""

import json
from typing import Any

import msgspec
import pytest

from webhook.cluster.device_class_informer import gpu_driver

DEVICES: dict[str, tuple[dict[str, Any], bool]] = {
    "by its type": ({"attributes": {"type": {"string": "gpu"}}}, True),
    "a slice": ({"attributes": {"accel.example.com/type": {"string": "mig"}}}, True),
    "by CUDA": ({"attributes": {"cudaComputeCapability": {"version": "9.0.0"}}}, True),
    "by its memory": ({"capacity": {"vram": {"value": "64Gi"}}}, True),
    "as v1beta1 has it": ({"basic": {"attributes": {"type": {"string": "gpu"}}}}, True),
    "a network card": ({"attributes": {"type": {"string": "nic"}, "network": {"string": "gpu-net-0"}}}, False),
    "nothing": ({}, False),
}


@pytest.mark.parametrize(("device", "is_gpu"), DEVICES.values(), ids=DEVICES)
async def test_what_a_slice_tells_of_its_driver(device: dict[str, Any], *, is_gpu: bool) -> None:
    spec = {"driver": "accel.example.com", "devices": [{"name": "other"}, {"name": "it", **device}]}
    found = gpu_driver(msgspec.Raw(json.dumps({"spec": spec}).encode()))
    assert found == ("accel.example.com" if is_gpu else None)
