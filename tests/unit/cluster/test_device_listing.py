"""The GPUs of each node, by the nodes and the ResourceSlices that an API server lists."""

from tests.builders.claims import a_device, a_slice
from webhook.cluster.listed import plugged_resources, supply_of
from webhook.policy.values.gpu_supply import NodeSupply


def test_each_node_has_its_plugins_and_the_drivers_with_devices_there() -> None:
    far = a_slice(a_device(), driver="far.example.com").having("spec.nodeName", None)
    slices = (
        a_slice(a_device(), node="a").view(),
        a_slice(a_device(), node="b").view(),
        a_slice(a_device(), node="b", driver="nic.example.com").view(),
        a_slice(node="b", driver="empty.example.com").view(),
        far.having("spec.allNodes", True).view(),
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
