"""How each node serves GPUs, by the nodes and the ResourceSlices that an API server lists."""

from typing import Any

from webhook.cluster.gpu_nodes import plugged_resources
from webhook.cluster.listed import supply_of
from webhook.objects.view import view
from webhook.policy.devices import ResourceSlice
from webhook.policy.values.gpu_supply import NodeSupply


def a_slice(driver: str, devices: int = 1, **where: Any) -> ResourceSlice:
    spec = {"driver": driver, "pool": {"name": "p"}, "devices": [{"name": f"d-{each}"} for each in range(devices)]}
    return view({"spec": spec | where}, ResourceSlice)


def test_each_node_has_its_plugins_and_the_drivers_with_devices_there() -> None:
    slices = (
        a_slice("gpu.nvidia.com", nodeName="a"),
        a_slice("gpu.nvidia.com", nodeName="b"),
        a_slice("nic.example.com", nodeName="b"),
        a_slice("empty.example.com", devices=0, nodeName="b"),
        a_slice("far.example.com", allNodes=True),
    )
    supply = supply_of({"a": frozenset({"nvidia.com/gpu"}), "c": frozenset()}, slices, (1, 37))
    assert supply.nodes == (
        NodeSupply("a", frozenset({"nvidia.com/gpu"}), frozenset({"gpu.nvidia.com"})),
        NodeSupply("b", frozenset(), frozenset({"gpu.nvidia.com", "nic.example.com"})),
        NodeSupply("c"),
    )
    assert supply.version == (1, 37)


def test_a_device_plugin_has_what_is_allocatable_and_above_zero() -> None:
    node = b'{"status": {"allocatable": {"cpu": "8", "nvidia.com/gpu": "0", "example.com/gpu": "2", "pods": "110"}}}'
    assert plugged_resources(node) == {"example.com/gpu": "2"}
