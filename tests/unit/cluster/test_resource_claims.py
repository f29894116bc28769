"""Devices of a claim, counted as the in-tree quota counts them (TestResourceClaimEvaluatorUsage in Kubernetes 1.37)."""

import pytest

from tests.builders.words import told
from webhook.objects.refusal import Refused
from webhook.objects.view import view
from webhook.policy.workloads.claims import Claim, ClaimTemplate, devices_of
from webhook.policy.workloads.workload import Devices


def devices(*requests: dict) -> list[Devices]:
    return list(devices_of(view({"spec": {"devices": {"requests": list(requests)}}}, Claim).spec, "gpu"))


def counted(*requests: dict) -> list[tuple[str, int]]:
    return [(each.device_class, each.count) for each in devices(*requests)]


GPU = "gpu.nvidia.com"
MIG = "mig.nvidia.com"


def test_v1_says_exactly_how_many():
    assert counted({"name": "a", "exactly": {"deviceClassName": GPU, "allocationMode": "ExactCount", "count": 4}}) == [
        (GPU, 4)
    ]


def test_v1beta1_says_it_flat():
    assert counted({"name": "a", "deviceClassName": GPU, "allocationMode": "ExactCount", "count": 2}) == [(GPU, 2)]


@pytest.mark.parametrize("left_out", [{}, {"count": 0}, {"count": None}])
def test_a_count_left_out_is_one(left_out: dict):
    assert counted({"name": "a", "exactly": {"deviceClassName": GPU, **left_out}}) == [(GPU, 1)]


def test_all_counts_as_the_most_a_claim_can_be_given():
    assert counted({"name": "a", "exactly": {"deviceClassName": GPU, "allocationMode": "All"}}) == [(GPU, 32)]


def test_a_mode_from_the_future_counts_as_none():
    assert counted({"name": "a", "exactly": {"deviceClassName": GPU, "allocationMode": "Some"}}) == [(GPU, 0)]


def test_who_monitors_is_not_exempt():
    exactly = {"deviceClassName": GPU, "count": 8, "adminAccess": True}
    assert counted({"name": "dcgm", "exactly": exactly}) == [(GPU, 8)]
    assert counted({"name": "dcgm", **exactly}) == [(GPU, 8)]


def test_of_alternatives_each_class_counts_with_its_largest():
    alternatives = [
        {"name": "big", "deviceClassName": GPU, "allocationMode": "ExactCount", "count": 1},
        {"name": "bigger", "deviceClassName": GPU, "allocationMode": "ExactCount", "count": 2},
        {"name": "slices", "deviceClassName": MIG, "allocationMode": "ExactCount", "count": 7},
        {"name": "future", "deviceClassName": MIG, "allocationMode": "Some"},
    ]
    assert counted({"name": "any", "firstAvailable": alternatives}) == [(GPU, 2), (MIG, 7)]


def test_all_of_an_alternative_counts_as_the_most_too():
    alternatives = [{"name": "every", "deviceClassName": GPU, "allocationMode": "All"}]
    assert counted({"name": "any", "firstAvailable": alternatives}) == [(GPU, 32)]


def test_requests_of_one_class_are_added():
    twice = [{"name": name, "exactly": {"deviceClassName": GPU, "count": 2}} for name in ("a", "b")]
    assert counted(*twice) == [(GPU, 2), (GPU, 2)]


def test_a_container_names_devices_by_claim_and_request():
    (found,) = devices({"name": "big", "exactly": {"deviceClassName": GPU}})
    assert (found.entry, found.request, found.claim) == ("gpu", "big", "")


def test_a_count_below_zero_is_refused():
    with pytest.raises(Refused) as refused:
        counted({"name": "a", "exactly": {"deviceClassName": GPU, "count": -1}})
    assert told(refused.value) == 'count: "-1" is not a number of devices; write 1 or more'


@pytest.mark.parametrize("spec", [{}, {"devices": {}}, {"devices": {"requests": None}}])
def test_a_claim_without_requests_asks_for_nothing(spec):
    assert list(devices_of(view({"spec": spec}, Claim).spec, "gpu")) == []


def test_a_template_holds_the_claim_one_level_down():
    inner = {"devices": {"requests": [{"name": "a", "exactly": {"deviceClassName": GPU, "count": 8}}]}}
    template = view({"spec": {"metadata": {"labels": {"a": "b"}}, "spec": inner}}, ClaimTemplate)
    assert list(devices_of(template.spec.spec, "gpu")) == [Devices(GPU, 8, "gpu", "a")]
