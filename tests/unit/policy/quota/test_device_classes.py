"""The count of a class's devices follows from its selector, and that of a MIG slice from its profile."""

from decimal import Decimal

import pytest
from msgspec.structs import replace

from tests.builders import a_pod, a_policy
from webhook.objects.view import view
from webhook.policy.quota.demand import demand_of
from webhook.policy.values.tier_policy import TierPolicy
from webhook.policy.values.weights import DeviceClass
from webhook.policy.workloads.claims import ClaimSpec, devices_of

NVIDIA = "device.driver == 'gpu.nvidia.com'"
MIG = f"{NVIDIA} && device.attributes['gpu.nvidia.com'].type == 'mig'"
CARDS = "device.driver == 'dra.net'"
PROFILE = "device.attributes['gpu.nvidia.com'].profile == '1g.10gb'"

SELECTORS: dict[str, tuple[tuple[str, ...], str]] = {
    "none: any device": ((), "1"),
    "a GPU's driver": ((NVIDIA,), "1"),
    "another quote": (('device.driver == "gpu.amd.com"',), "1"),
    "Gaudi": (("device.driver == 'gaudi.intel.com'",), "1"),
    "slices": ((MIG,), "1"),
    "slices of a profile": ((f"{MIG} && {PROFILE}",), "0.125"),
    "a profile by itself": ((MIG, PROFILE), "0.125"),
    "network cards": ((CARDS,), "0"),
    "network cards of a kind": ((f"{CARDS} && device.attributes['dra.net'].rdma == true",), "0"),
    "channels of a fabric": (("device.driver == 'compute-domain.nvidia.com'",), "0"),
    "a call beside the driver": ((f"device.attributes['dra.net'].ifName.startsWith('eth') && {CARDS}",), "0"),
    "two selectors": (("device.attributes['dra.net'].rdma", CARDS), "0"),
    "a driver that is not plain": (("device.driver.endsWith('nvidia.com')",), "1"),
    "one of two drivers": ((f"{CARDS} || {NVIDIA}",), "1"),
    "any but one": ((f"!({CARDS})",), "1"),
    "any but one, in brackets": ((f"!(true && {CARDS} && true)",), "1"),
    "a condition": ((f"true ? {NVIDIA} : {CARDS}",), "1"),
    "a text that looks like a term": ((f"'a && {CARDS.replace(chr(39), chr(34))} && b' != ''",), "1"),
    "a text over quotes": ((f"'''a' && {CARDS} && 'b''' != ''",), "1"),
    "an escaped quote": ((f"'\\' && {CARDS} && \\'' != ''",), "1"),
    "a comment": ((f"true // && \n && {CARDS}",), "1"),
}


def counting(*classes: DeviceClass) -> TierPolicy:
    return replace(a_policy(), classes={each.name: each for each in classes})


def claimed(policy: TierPolicy, *requests: dict[str, object]) -> Decimal:
    devices = devices_of(view({"devices": {"requests": requests}}, ClaimSpec), "gpu")
    return demand_of(a_pod().view(), [*devices], policy)


def request(device_class: str, *selectors: str, **fields: object) -> dict[str, object]:
    return {
        "deviceClassName": device_class,
        "selectors": [{"cel": {"expression": each}} for each in selectors],
        **fields,
    }


@pytest.mark.parametrize(("selectors", "gpus"), SELECTORS.values(), ids=SELECTORS)
def test_a_class_counts_by_its_selectors_however_it_is_asked_for(selectors: tuple[str, ...], gpus: str) -> None:
    policy = counting(DeviceClass("fast", selectors, "example.com/thing"))
    by_claim = claimed(policy, {"name": "a", "exactly": request("fast", count=2)})
    by_name = [
        demand_of(a_pod().asking(2, resource=each).view(), (), policy)
        for each in ("deviceclass.resource.kubernetes.io/fast", "example.com/thing")
    ]
    assert {by_claim, *by_name} == {2 * Decimal(gpus)}


REQUESTS: dict[str, tuple[dict[str, object], str]] = {
    "a profile": (request("mig", PROFILE), "0.125"),
    "a profile among others": (
        request("mig", MIG, f"{PROFILE} && device.attributes['gpu.nvidia.com'].index == 1"),
        "0.125",
    ),
    "a profile that the policy does not list": (request("mig", PROFILE.replace("1g", "2g")), "0.25"),
    "a profile of media engines": (request("mig", PROFILE.replace("10gb", "10gb+me")), "0.125"),
    "a profile, or not": (request("mig", f"{PROFILE} || true"), "1"),
    "anything but a profile": (request("mig", f"!({PROFILE})"), "1"),
    "a profile in a text": (request("mig", f'"x && {PROFILE} && y" != ""'), "1"),
    "a profile of another's attribute": (request("mig", PROFILE.replace("gpu.nvidia.com", "evil.io")), "1"),
    "no profile": (request("mig", PROFILE.replace("1g.10gb", "all of it")), "1"),
    "a class that the policy weighs": (request("gpu.nvidia.com", PROFILE), "1"),
    "part of a device's capacity": (request("mig", capacity={"requests": {"memory": "1Gi"}}), "1"),
    "a class that is not known": (request("new"), "1"),
}


@pytest.mark.parametrize(("asked", "gpus"), REQUESTS.values(), ids=REQUESTS)
def test_a_request_counts_the_most_that_it_admits(asked: dict[str, object], gpus: str) -> None:
    policy = counting(DeviceClass("mig", (MIG,)))
    assert claimed(policy, {"name": "a", "exactly": asked}) == Decimal(gpus)
    assert claimed(policy, {"name": "a", **asked}) == Decimal(gpus), "as v1beta1 has it"


def test_alternatives_count_each_class_and_profile() -> None:
    policy = counting(DeviceClass("mig", (MIG,)))
    either = [request("mig", PROFILE, count=3), request("mig", PROFILE), request("gpu.nvidia.com")]
    assert claimed(policy, {"name": "a", "firstAvailable": either}) == Decimal("1.375")


def test_the_policys_weight_comes_first() -> None:
    listed = [
        {"deviceClassName": "fast", "weight": "0.5"},
        {"name": "example.com/other", "weight": "2"},
        {"deviceClassName": "lenses", "weight": "0"},
    ]
    classes = [DeviceClass("fast", (CARDS,), "example.com/thing"), DeviceClass("big", (NVIDIA,), "example.com/other")]
    policy = replace(a_policy(resources=listed), classes={each.name: each for each in classes})
    asked = {"example.com/thing": "0.5", "example.com/other": "2", "deviceclass.resource.kubernetes.io/lenses": "0"}
    for resource, gpus in asked.items():
        assert demand_of(a_pod().asking(resource=resource).view(), (), policy) == Decimal(gpus)


def test_a_resource_of_several_classes_counts_as_the_largest() -> None:
    policy = counting(
        DeviceClass("slices", (f"{MIG} && {PROFILE}",), "example.com/thing"),
        DeviceClass("cards", (CARDS,), "example.com/thing"),
        DeviceClass("nics", (CARDS,), "example.com/gpu-nic"),
    )
    assert demand_of(a_pod().asking(2, resource="example.com/thing").view(), (), policy) == Decimal("0.25")
    assert demand_of(a_pod().asking(2, resource="example.com/gpu-nic").view(), (), policy) == 0, "by what it is"
