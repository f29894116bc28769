"""Preemption for devices of DRA on a real scheduler: nodes are reserved, pods evicted, and the right pod gets the devices.

Every test has claims of another driver that are freed elsewhere, and fresh pods of a low tier.
"""

from collections.abc import Iterator

import pytest

from .asking import events, running
from .busy_devices import Busy, seconds_until
from .installed import Installed

pytestmark = pytest.mark.apiserver


@pytest.fixture(scope="module")
def preempting(installed: Installed) -> Iterator[Installed]:
    with installed.policy_with(preemption={"dra": "On"}):
        yield installed


@pytest.fixture
def busy(preempting: Installed, namespace: str) -> Iterator[Busy]:
    yield Busy(preempting, namespace)


@pytest.mark.parametrize("by", ["claim", "resource"])
def test_a_pod_of_a_high_tier_gets_the_device_of_a_low_one(busy: Busy, namespace: str, by: str) -> None:
    busy.add_nodes("a")
    busy.create(busy.pod("low", "gpu-batch", by=by, grace=4))
    busy.installed.eventually(lambda: running(busy.installed, namespace, "low"), "the device, held")
    with busy.unrest(by=by):
        busy.create(busy.pod("high", "gpu-training", by=by))
        busy.installed.eventually(lambda: busy.reserved() == {busy.node("a"): "gpu-training"}, "the reservation")
        assert busy.on("low"), "reserved first, then evicted"
        seconds_until(lambda: not busy.on("low"), 30)
        assert seconds_until(lambda: busy.on("high"), 12) < 12
        seconds_until(lambda: not busy.reserved(), 10)
    told = events(busy.installed, namespace, "Preempted")
    assert told.keys() == {"low"}
    busy.remove("a")
