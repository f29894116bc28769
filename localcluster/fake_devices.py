"""Makes devices of DRA that exist only in the API: the scheduler allocates them, and no driver prepares them."""

from collections.abc import Mapping
from typing import Any

from localcluster.cluster import Cluster

DRIVER = "gpu.nvidia.com"
"""The driver of a kept cluster's devices. NVIDIA's DeviceClass for whole GPUs has the same name."""
NODE = "dra-0"


def add_devices(cluster: Cluster, count: int) -> None:
    """Add the fake node NODE with `count` GPUs by DRA, and their DeviceClass."""
    cluster.add_node(NODE, gpus=0)
    found = (device(f"gpu-{number}") for number in range(count))
    of_driver = f"device.driver == '{DRIVER}'"
    cluster.api.apply(device_class(DRIVER, of_driver), resource_slice(*found, node=NODE))


def device_class(name: str, *selectors: str, resource: str = "") -> dict[str, Any]:
    """Return a DeviceClass with these CEL expressions, whose devices may be asked for as a resource of that name."""
    named = {"extendedResourceName": resource} if resource else {}
    spec = {"selectors": [{"cel": {"expression": each}} for each in selectors], **named}
    return {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": name}, "spec": spec}


def resource_slice(
    *devices: Mapping[str, object], node: str, driver: str = DRIVER, generation: int = 1, count: int = 1
) -> dict[str, Any]:
    """Return a ResourceSlice of a node, one of `count` in its pool."""
    pool = {"name": node, "generation": generation, "resourceSliceCount": count}
    spec = {"driver": driver, "nodeName": node, "pool": pool, "devices": list(devices)}
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": node}, "spec": spec}


def device(name: str, *taints: Mapping[str, str], **attributes: object) -> dict[str, Any]:
    """Return a device of a slice, whose attributes are strings, booleans, or dicts that name the type."""
    typed = {True: "bool", False: "string"}
    found = {
        key: value if isinstance(value, dict) else {typed[isinstance(value, bool)]: value}
        for key, value in attributes.items()
    }
    return {"name": name, "attributes": found, "taints": list(taints)}
