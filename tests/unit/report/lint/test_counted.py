"""The devices that are GPUs and are not in the policy."""

from decimal import Decimal

from msgspec.structs import replace

from tests.builders import a_policy
from tests.unit.report.lint.asking import a_cluster, a_gpu_node, found
from webhook.policy.values.weights import DeviceClass

NVIDIA = "device.driver == 'gpu.nvidia.com'"
CLASSES = (
    DeviceClass("any"),
    DeviceClass("cards", ("device.driver == 'dra.net'",)),
    DeviceClass("fast", (NVIDIA,), "example.com/thing"),
    DeviceClass("gpu.nvidia.com", (NVIDIA,)),
    DeviceClass("slices", (NVIDIA, "device.attributes['gpu.nvidia.com'].profile == '1g.10gb'")),
)


def test_every_device_class_is_reported_with_what_it_counts_and_why() -> None:
    policy = replace(a_policy(), classes={each.name: each for each in CLASSES})
    assert found("device-class-counts", a_cluster(policy)) == [
        "DeviceClass/any: counts 1 GPU a device: its selectors name no driver, so a GPU may be among its devices",
        "DeviceClass/cards: counts 0 GPU a device: no GPU is known of its driver, dra.net",
        "DeviceClass/fast: counts 1 GPU a device, also as example.com/thing: its driver is gpu.nvidia.com",
        "DeviceClass/gpu.nvidia.com: counts 1 GPU a device: the policy lists it",
        "DeviceClass/slices: counts 0.125 GPU a device: its driver is gpu.nvidia.com, its profile 1g.10gb",
    ]


def test_a_resource_that_the_policy_does_not_list() -> None:
    offers = {"nvidia.com/gpu": Decimal(4), "nvidia.com/gpu.shared": Decimal(16)}
    nodes = tuple(a_gpu_node(name, offers=offers) for name in ("n1", "n2"))
    assert found("resource-not-listed", a_cluster(nodes=nodes)) == [
        "nvidia.com/gpu.shared: on n1, n2, counts 1 GPU each: it looks like GPUs"
    ]
