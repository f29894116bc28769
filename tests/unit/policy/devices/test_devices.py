"""The devices that would do for a request, and their users: by ResourceSlices, ResourceClaims and taint rules."""

from typing import Any

import pytest

from tests.builders.built import Tree
from tests.builders.claims import SliceBuilder, a_device, a_slice
from webhook.objects.node_fit import Toleration
from webhook.objects.view import view
from webhook.policy.devices import (
    DeviceClaim,
    DeviceKey,
    DeviceTaintRule,
    Inventory,
    WantedDevices,
    inventory,
)
from webhook.policy.values.weights import DeviceClass

DRIVER = "gpu.nvidia.com"
CLASS = DeviceClass(DRIVER, (f"device.driver == '{DRIVER}'",))
H100 = f"device.attributes['{DRIVER}'].productName == 'H100'"
FREE = "device.capacity['gpu.nvidia.com'].memory.isGreaterThan(quantity('40Gi'))"


def an_allocated_claim(
    name: str, *selectors: str, device: str = "gpu-0", device_class: str = DRIVER, **result: Any
) -> DeviceClaim:
    exactly = {"deviceClassName": device_class, "selectors": [{"cel": {"expression": each}} for each in selectors]}
    results = [{"request": "gpu", "driver": DRIVER, "pool": "node-a", "device": device, **result}]
    tree = {
        "metadata": {"name": name, "namespace": "team"},
        "spec": {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}},
        "status": {"allocation": {"devices": {"results": results}}},
    }
    return view(tree, DeviceClaim)


def there(*slices: SliceBuilder, claims: tuple[DeviceClaim, ...] = (), rules: tuple[Tree, ...] = ()) -> Inventory:
    found = [view({"spec": each}, DeviceTaintRule) for each in rules]
    return inventory([each.view() for each in slices], found, claims, {DRIVER: CLASS})


KEY = DeviceKey(DRIVER, "node-a", "gpu-0")


@pytest.mark.parametrize(
    ("selector", "does"),
    [
        (H100, True),
        (H100.replace("'H100'", '"H100"'), True),
        (f"{H100} && device.driver == 'gpu.nvidia.com'", True),
        (H100.replace("H100", "A100"), False),
        (f"device.attributes['{DRIVER}'].mig == true", True),
        (f"device.attributes['{DRIVER}'].mig == 1", False),
        (f"device.attributes['{DRIVER}'].unknown == 'x'", False),
        (f"{H100.replace('H100', 'A100')} && {FREE}", False),
        (FREE, None),
        (f"{H100} || {FREE}", None),
    ],
)
def test_plain_comparisons_are_evaluated(selector: str, does: bool | None) -> None:
    found = there(a_slice(a_device(productName="H100", mig=True)))
    assert found.does(KEY, WantedDevices(DRIVER, 1, (selector,))) is does


def test_any_other_selector_is_judged_like_for_like() -> None:
    """A device is allocated through a request of the same class with at least the same selectors: it would do again."""
    slices = a_slice(a_device())
    allocated = there(slices, claims=(an_allocated_claim("one", FREE, "self.unread"),))
    assert allocated.does(KEY, WantedDevices(DRIVER, 1, (FREE,))) is True
    assert allocated.does(KEY, WantedDevices(DRIVER, 1, (FREE, "more"))) is None
    other_class = there(slices, claims=(an_allocated_claim("one", FREE, device_class="mig"),))
    assert other_class.does(KEY, WantedDevices(DRIVER, 1, (FREE,))) is None


def test_a_class_without_a_selector_or_unknown_takes_no_device_for_granted() -> None:
    assert there(a_slice(a_device())).does(KEY, WantedDevices("unknown", 1)) is True, "no selector says otherwise"
    nics = there(a_slice(a_device(), driver="nic"))
    assert nics.does(DeviceKey("nic", "node-a", "gpu-0"), WantedDevices(DRIVER, 1)) is False


def test_only_the_newest_generation_of_a_whole_pool_counts() -> None:
    newer = a_slice(a_device("gpu-1"), generation=2)
    assert [key.device for key in there(a_slice(a_device()), newer).devices] == ["gpu-1"]
    assert there(a_slice(a_device(), count=2)).devices == {}, "one slice of two"


def test_taints_of_a_slice_and_of_rules() -> None:
    busy = {"key": "busy", "effect": "NoSchedule"}
    rule = {"deviceSelector": {"driver": DRIVER, "pool": "node-a"}, "taint": {"key": "repair", "effect": "NoExecute"}}
    other = {"deviceSelector": {"device": "gpu-7"}, "taint": {"key": "other", "effect": "NoSchedule"}}
    found = there(a_slice(a_device("gpu-0", busy)), rules=(rule, other))
    assert [each.key for each in found.devices[KEY].taints] == ["busy", "repair"]
    busy_tolerated = Toleration(key="busy", operator="Exists")
    reasons = found.untolerated(KEY, WantedDevices(DRIVER, 1, (), (busy_tolerated,)))
    assert reasons is not None
    assert reasons.key == "repair"
    everything = Toleration(operator="Exists")
    assert found.untolerated(KEY, WantedDevices(DRIVER, 1, (), (everything,))) is None


def test_administrative_access_holds_nothing() -> None:
    assert there(a_slice(a_device()), claims=(an_allocated_claim("monitor", adminAccess=True),)).holders == {}


def test_a_request_of_alternatives_is_found_by_its_name_in_the_result() -> None:
    requests = [{"name": "any", "firstAvailable": [{"name": "big", "deviceClassName": "big", "count": 2}]}]
    claim = view({"spec": {"devices": {"requests": requests}}}, DeviceClaim)
    assert [*claim.wanted()] == [("any/big", WantedDevices("big", 2))]
    flat = view({"spec": {"devices": {"requests": [{"name": "gpu", "deviceClassName": "x"}]}}}, DeviceClaim)
    assert [*flat.wanted()] == [("gpu", WantedDevices("x", 1))], "as v1beta1 has it"
