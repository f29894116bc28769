"""Workloads as an audit meets them."""

from decimal import Decimal
from typing import Any

from tests.builders import a_policy
from webhook.policy.values.tenants import QuotaRow, Tenant
from webhook.readmodel.audit.audit_report import AuditReport, audit_report
from webhook.readmodel.audit.audited import Audited, HookDue, PodsAlike

POLICY = a_policy()
VALUES = {each.name: each.value for each in POLICY.tiers}


def pods(count: int = 1, tier: str = "gpu-training", **more: Any) -> PodsAlike:
    """Pods of a tier with a GPU each, as gpu-tiers left them."""
    as_it = {"class_name": tier, "priority": VALUES[tier], "tier": tier, "hook": True, "grace": 130}
    return PodsAlike(count, Decimal(count), **{**as_it, **more})


def unseen(count: int = 1) -> PodsAlike:
    """Pods from before gpu-tiers."""
    return PodsAlike(count, Decimal(count), marked=False)


def workload(*its_pods: PodsAlike, tier: str = "gpu-training", **more: Any) -> Audited:
    """A training Job that the policy gives a tier."""
    about = {"kind": "Job", "group": "batch", "namespace": "team-alpha", "name": "train", "verdict": "Allowed"}
    given = {"tier": tier, "classes": {tier: VALUES[tier]}, "workload_type": "training", "hook": HookDue("file", 130)}
    return Audited(**{**about, **given, "pods": its_pods, **more})


def tenant(name: str = "alpha", **more: Any) -> Tenant:
    """A tenant; `gpus` are its rows by tier, "" for the total."""
    rows = tuple(QuotaRow(Decimal(gpus), tier or None) for tier, gpus in more.pop("gpus", {}).items())
    return Tenant(name, rows=rows, **more)


def report(*audited: Audited, ignored: tuple[str, ...] = ()) -> AuditReport:
    """The audit of these workloads."""
    return audit_report(audited, POLICY, ignored)


def told(*audited: Audited) -> list[str]:
    """What is found, a line each."""
    return [f"{each.severity}: {each.id}: {each.where}: {each.what}" for each in report(*audited).findings]
