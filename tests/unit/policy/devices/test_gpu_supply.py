"""The GPUs that each node serves, and those for which kube-scheduler evicts pods."""

from webhook.policy.values.gpu_supply import GpuSupply, NodeSupply, ServedClass, evicts_for_devices
from webhook.policy.values.weights import DeviceClass, Weights

GPU = "nvidia.com/gpu"
CLASS = DeviceClass("gpu.nvidia.com", ("device.driver == 'gpu.nvidia.com'",), GPU)
NIC = DeviceClass("nic", ("device.driver == 'nic.example.com'",))
CLASSES = {each.name: each for each in (CLASS, NIC)}
WEIGHTS = Weights({}, CLASSES, unlisted=True)
DRA = frozenset({"gpu.nvidia.com"})
MIXED = GpuSupply(
    (
        NodeSupply("both", frozenset({GPU}), DRA),
        NodeSupply("dra", frozenset(), DRA),
        NodeSupply("old", frozenset({GPU})),
    ),
    (1, 37),
)


def test_a_mixed_cluster_is_reported_node_by_node() -> None:
    """A node whose device plugin has the resource is judged by that, also where a DRA driver runs there."""
    assert MIXED.served(CLASSES, WEIGHTS) == (ServedClass("gpu.nvidia.com", GPU, ("dra",), ("both", "old")),)


def test_a_class_without_a_driver_is_served_by_any_driver_of_gpus() -> None:
    anything = {"any": DeviceClass("any")}
    assert [each.by_devices for each in MIXED.served(anything, Weights({}, anything, unlisted=True))] == [
        ("both", "dra")
    ]


def test_the_scheduler_evicts_for_a_resource_where_some_device_plugin_has_it() -> None:
    scope = MIXED.scope
    assert scope.has(GPU, WEIGHTS)
    assert not scope.has("deviceclass.resource.kubernetes.io/gpu.nvidia.com", WEIGHTS)
    dra_alone = GpuSupply((NodeSupply("dra", frozenset(), DRA),), (1, 37)).scope
    assert not dra_alone.has(GPU, WEIGHTS)
    assert dra_alone.has("example.com/card", WEIGHTS), "no DeviceClass serves it"


def test_no_version_up_to_138_evicts_for_devices() -> None:
    answers = {version: evicts_for_devices(version) for version in ((0, 0), (1, 34), (1, 38), (1, 39), (2, 0))}
    assert answers == {(0, 0): False, (1, 34): False, (1, 38): False, (1, 39): True, (2, 0): True}


def test_of_two_classes_of_one_resource_the_newer_counts_then_the_first_by_name() -> None:
    def served_by(**created: str) -> str:
        classes = {name: DeviceClass(name, (), GPU, created=when) for name, when in created.items()}
        return Weights({}, classes, unlisted=True).class_of(GPU)

    assert served_by(a="2026-01-01T00:00:00Z", b="2026-01-02T00:00:00Z") == "b"
    assert served_by(b="2026-01-01T00:00:00Z", a="2026-01-01T00:00:00Z") == "a"
    assert WEIGHTS.class_of("deviceclass.resource.kubernetes.io/mig") == "mig"
    assert WEIGHTS.class_of("example.com/card") == ""
