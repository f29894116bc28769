"""Workloads as an audit meets them."""

from decimal import Decimal
from typing import Any

from tests.builders import a_policy
from tests.unit.report.lint.asking import NOW
from webhook.cli.audit import AuditReport, audit_report
from webhook.objects.refusal import Phrase
from webhook.policy.assignment.request import Assignment
from webhook.policy.classification.evidence import Evidence
from webhook.policy.values.tenants import QuotaRow, Tenant
from webhook.policy.workloads.kind_table import WorkloadType
from webhook.report.lint.snapshot import Audited, ClusterSnapshot, PodsAlike
from webhook.report.object_verdict import HookDue, VerdictName

POLICY = a_policy()
HOOK = HookDue("file", 130)
VALUES = {each.name: each.value for each in POLICY.tiers}


def pods(count: int = 1, tier: str = "gpu-training", **more: Any) -> PodsAlike:
    """Pods of a tier with a GPU each, as gpu-tiers left them."""
    as_it = {"class_name": tier, "priority": VALUES[tier], "tier": tier, "hook": True, "grace": 130}
    return PodsAlike(count, Decimal(count), **{**as_it, **more})


def unseen(count: int = 1) -> PodsAlike:
    """Pods from before gpu-tiers."""
    return PodsAlike(count, Decimal(count), marked=False)


def workload(
    *its_pods: PodsAlike,
    tier: str = "gpu-training",
    verdict: str = "Allowed",
    refusal: str = "",
    hook: HookDue | None = HOOK,
    named: bool = False,
    **more: Any,
) -> Audited:
    """A training Job that the policy gives a tier; `named`: somebody asked for it."""
    given = POLICY.tiers.get(tier)
    said = {
        "verdict": VerdictName(verdict),
        "tiers": (given,) if given else (),
        "assignment": Assignment(given, "label", Phrase("as-told", text=""), asked="its label" if named else ""),
        "evidence": Evidence(WorkloadType.TRAINING, "its kind"),
        "hooks": (hook,) if hook else (),
        "message": refusal,
        "classes": {tier: VALUES[tier]},
    }
    about = {"kind": "Job", "group": "batch", "namespace": "team-alpha", "name": "train"}
    return Audited(**{**about, **said, "pods": its_pods, **more})


def tenant(name: str = "alpha", **more: Any) -> Tenant:
    """A tenant; `gpus` are its rows by tier, "" for the total."""
    rows = tuple(QuotaRow(Decimal(gpus), tier or None) for tier, gpus in more.pop("gpus", {}).items())
    return Tenant(name, rows=rows, **more)


def report(*audited: Audited, ignored: tuple[str, ...] = ()) -> AuditReport:
    """The audit of these workloads."""
    return audit_report(ClusterSnapshot(POLICY, NOW, workloads=audited), ignored)


def lines_of(*audited: Audited) -> list[str]:
    """Return the findings, a line each."""
    return [f"{each.severity}: {each.id}: {each.where}: {each.what}" for each in report(*audited).findings]
