"""A pod that runs in a lower tier because GPU-hours are used up reads that, and when there are new ones."""

import asyncio
from typing import Any

import pytest

from tests.builders import a_deployment, a_pod, a_pytorchjob
from tests.builders.tenants import TenantBuilder, a_tenant
from tests.builders.world import FakeApi
from webhook.policy.quota.charges import lacking
from webhook.sentences.sentence import sentence

USED_UP = "5,010 of 5,000 GPU-hours of gpu-training are used (new hours on 1 December 2026, 00:00 Europe/Berlin)"


def a_borrower(used_hours: int = 5010, **more: Any) -> TenantBuilder:
    """A tenant whose pods run lower once the hours of a month are used up; its quota has room."""
    budget = {"tier": "gpu-training", "gpuHours": 5000, "per": "Month", "timeZone": "Europe/Berlin"}
    period = {"from": "2026-10-31T23:00:00Z", "until": "2026-11-30T23:00:00Z", "since": "2026-10-31T23:00:00Z"}
    used = {"usedGpuSeconds": str(used_hours * 3600), "gpus": "8", "asOf": "2026-11-20T10:00:00.000Z"}
    note = {"tier": "gpu-training", "per": "Month", "timeZone": "Europe/Berlin", **period, **used}
    tenant = a_tenant(budgets=[{**budget, "onExhausted": "Demote", **more}]).allowing("64")
    return tenant.having("status.budgets", [note])


def a_workload(kind: str) -> Any:
    template = a_pod().asking(2).json()["spec"]
    return {
        "Pod": a_pod("p").asking(2).of_tier("gpu-training"),
        "Deployment": a_deployment().having("spec.template.spec", template).of_tier("gpu-training"),
        "PyTorchJob": a_pytorchjob(workers=2).of_tier("gpu-training"),
    }[kind]


@pytest.mark.parametrize(
    ("kind", "and_then"),
    [
        ("Pod", "; this pod runs as gpu-batch"),
        ("Deployment", ": its pods run as gpu-batch"),
        ("PyTorchJob", "; all pods of this PyTorchJob run as gpu-batch"),
    ],
)
def test_whoever_applies_it_reads_that_the_hours_are_used_up(kind: str, and_then: str) -> None:
    world, applied = FakeApi(a_borrower()), a_workload(kind)
    answer = asyncio.run(world.mutate(applied) if kind == "Pod" else world.create(applied))
    assert answer.allowed
    (warning,) = (each for each in answer.warnings if "run as" in each or "runs as" in each)
    assert warning.startswith(f"tenant alpha: {USED_UP}")
    assert and_then in warning
    assert "room" not in warning


@pytest.mark.parametrize(
    ("used_hours", "said"),
    [
        (5010, f"tenant alpha: {USED_UP};"),
        (0, "tenant alpha had no room or no GPU-hours for it in gpu-training:"),
    ],
)
def test_a_pod_that_was_demoted_earlier_is_not_told_that_there_was_no_room(used_hours: int, said: str) -> None:
    assert sentence(lacking(a_borrower(used_hours).view(), "gpu-training", None)) == said


def test_a_tenant_without_such_a_budget_had_no_room() -> None:
    tenant = a_borrower(onExhausted="Deny").view()
    assert sentence(lacking(tenant, "gpu-training", None)) == "tenant alpha has no room for it in gpu-training:"


@pytest.mark.parametrize(("used_hours", "queued"), [(0, True), (5010, False)])
def test_a_used_up_budget_that_refuses_does_so_in_a_tenant_with_a_queue(used_hours: int, queued: bool) -> None:
    tenant = a_borrower(used_hours, onExhausted="Deny").having("spec.onExceed", "Hold")
    answer = asyncio.run(FakeApi(tenant).create(a_pod("p").asking(2).of_tier("gpu-training")))
    assert answer.allowed is queued
    assert queued or answer.sentence.startswith(f"exceeded quota: tenant alpha: {USED_UP}")


def test_who_has_neither_hours_nor_room_below_reads_which_tiers_would_take_it_once_they_have_room() -> None:
    tenant = a_borrower().allowing("1", tier="gpu-batch").allowing("1", tier="gpu-interactive")
    world = FakeApi(tenant)
    for tier in ("gpu-batch", "gpu-interactive"):
        assert asyncio.run(world.create(a_pod(tier).asking(1).of_tier(tier))).allowed
    refused = asyncio.run(world.create(a_pod("p").asking(1).of_tier("gpu-training"))).sentence
    assert f"tenant alpha: {USED_UP}" in refused
    assert "once there is room: gpu-batch, gpu-interactive" in refused
