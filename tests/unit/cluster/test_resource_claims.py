"""Devices of a claim, counted as the in-tree quota counts them."""

import pytest

from webhook.cluster.claims import Claim, ClaimTemplate, devices_of
from webhook.objects.view import view
from webhook.policy.values.facts import Devices


def counted(*requests: dict) -> list[Devices]:
    return list(devices_of(view({"spec": {"devices": {"requests": list(requests)}}}, Claim).spec))


GPU = "gpu.nvidia.com"
MIG = "mig.nvidia.com"


def test_v1_says_exactly_how_many():
    assert counted({"name": "a", "exactly": {"deviceClassName": GPU, "allocationMode": "ExactCount", "count": 4}}) == [
        Devices(GPU, 4)
    ]


def test_v1beta1_says_it_flat():
    assert counted({"name": "a", "deviceClassName": GPU, "allocationMode": "ExactCount", "count": 2}) == [
        Devices(GPU, 2)
    ]


def test_a_count_left_out_is_one():
    assert counted({"name": "a", "exactly": {"deviceClassName": GPU}}) == [Devices(GPU, 1)]


def test_all_counts_as_the_most_a_claim_can_be_given():
    assert counted({"name": "a", "exactly": {"deviceClassName": GPU, "allocationMode": "All"}}) == [Devices(GPU, 32)]


def test_a_mode_from_the_future_counts_as_none():
    assert counted({"name": "a", "exactly": {"deviceClassName": GPU, "allocationMode": "Some"}}) == [Devices(GPU, 0)]


def test_of_alternatives_each_class_counts_with_its_largest():
    alternatives = [
        {"name": "big", "deviceClassName": GPU, "allocationMode": "ExactCount", "count": 1},
        {"name": "bigger", "deviceClassName": GPU, "allocationMode": "ExactCount", "count": 2},
        {"name": "slices", "deviceClassName": MIG, "allocationMode": "ExactCount", "count": 7},
    ]
    assert counted({"name": "any", "firstAvailable": alternatives}) == [Devices(GPU, 2), Devices(MIG, 7)]


@pytest.mark.parametrize("spec", [{}, {"devices": {}}, {"devices": {"requests": None}}])
def test_a_claim_without_requests_asks_for_nothing(spec):
    assert list(devices_of(view({"spec": spec}, Claim).spec)) == []


def test_a_template_holds_the_claim_one_level_down():
    inner = {"devices": {"requests": [{"name": "a", "exactly": {"deviceClassName": GPU, "count": 8}}]}}
    template = view({"spec": {"metadata": {"labels": {"a": "b"}}, "spec": inner}}, ClaimTemplate)
    assert list(devices_of(template.spec.spec)) == [Devices(GPU, 8)]
