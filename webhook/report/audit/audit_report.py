"""An audit as people and programs read it: counts by tenant and tier, each workload, and the findings."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from decimal import Decimal
from typing import Any

import msgspec
from msgspec.structs import asdict, replace

from webhook.policy.values.tier_policy import TierPolicy
from webhook.report.audit.audited import Audited, AuditStanding, standing_of
from webhook.report.audit.contradictions import OVER_QUOTA, WORKLOAD_RULES, WorkloadUnder
from webhook.report.lint.rule import LintFinding, Severity
from webhook.report.object_verdict import NONE
from webhook.report.shown import Gpus, Shown, as_number

QUOTAS_AS_IF_EMPTY = "Quotas are judged as if nothing ran; gpu-tiers explain and why-pending ask what has room now."


class Share(Shown, frozen=True):
    """So many workloads, and the GPUs of their pods."""

    workloads: int
    gpus: Gpus


class AuditCounts(Shown, frozen=True):
    """All workloads of a tenant that get or have a tier, and how they stand. `tenant` is "none" where nobody's is.

    One that has demoted pods is counted in each tier in which its pods run.
    """

    tenant: str
    tier: str
    all: Share
    agrees: Share
    changed: Share
    refused: Share
    before: Share


class AuditReport(msgspec.Struct, frozen=True):
    """A whole audit. `notes` are sentences on what was left out, `unread` on what can't be told without a right."""

    mode: str
    total: AuditCounts
    tenants: tuple[AuditCounts, ...]
    findings: tuple[LintFinding, ...]
    workloads: tuple[Audited, ...]
    notes: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "workloads": [_workload(each) for each in self.workloads]}


def audit_report(
    audited: Iterable[Audited],
    policy: TierPolicy,
    ignored: Collection[str] = (),
    notes: Sequence[str] = (),
    of_namespaces: Iterable[LintFinding] = (),
    unread: Sequence[str] = (),
) -> AuditReport:
    """The report, those rules aside that are ignored. Errors come first."""
    ordered = sorted(audited, key=lambda each: (_tenant(each), each.namespace, each.kind, each.name, each.source))
    asked = [rule for rule in WORKLOAD_RULES if rule.id not in ignored]
    told = {id(each): [f for rule in asked for f in rule.findings(WorkloadUnder(each, policy))] for each in ordered}
    of_tenants = [] if OVER_QUOTA.id in ignored else OVER_QUOTA.findings(ordered)
    of_labels = (each for each in of_namespaces if each.id not in ignored)
    found = [*(each for some in told.values() for each in some), *of_tenants, *of_labels]
    severities = list(Severity)
    return AuditReport(
        mode=policy.mode.name,
        total=_counts("all", "-", ordered),
        tenants=tuple(_by_tenant(ordered, policy)),
        findings=tuple(sorted(found, key=lambda each: severities.index(each.severity))),
        workloads=tuple(replace(each, findings=tuple(f.id for f in told[id(each)])) for each in ordered),
        notes=tuple(notes),
        unread=tuple(unread),
    )


def quota_note(audited: Iterable[Audited]) -> Iterator[str]:
    """On workloads without pods in a tenant with a quota: why they have none may be that it is full."""
    waiting = (each for each in audited if each.tiers and not each.message and not each.existing)
    if any(each.tenant and each.tenant.rows for each in waiting):
        yield QUOTAS_AS_IF_EMPTY


def _by_tenant(audited: Sequence[Audited], policy: TierPolicy) -> Iterator[AuditCounts]:
    """The highest tier first; what gets none comes last."""
    groups: dict[tuple[str, str], list[Audited]] = {}
    for each in audited:
        for tier, pods in each.by_tier.items():
            groups.setdefault((_tenant(each), tier), []).append(replace(each, pods=pods))
    ranks = {name: rank for rank, name in enumerate([*(tier.name for tier in policy.tiers), ""])}
    for tenant, tier in sorted(groups, key=lambda key: (key[0] == NONE, key[0], ranks[key[1]])):
        yield _counts(tenant, tier or NONE, groups[tenant, tier])


def _counts(tenant: str, tier: str, found: Sequence[Audited]) -> AuditCounts:
    by_standing: dict[AuditStanding, list[Audited]] = {each: [] for each in AuditStanding}
    for each in found:
        by_standing[standing_of(each)].append(each)
    parts = {standing.value: _share(some) for standing, some in by_standing.items()}
    return AuditCounts(tenant, tier, all=_share(found), **parts)


def _share(found: Sequence[Audited]) -> Share:
    return Share(len(found), as_number(sum((each.gpus for each in found), Decimal(0))))


def _tenant(found: Audited) -> str:
    return found.tenant.name if found.tenant else NONE


def _workload(found: Audited) -> dict[str, Any]:
    pods = [
        {"count": each.count, "gpus": as_number(each.gpus), "className": each.class_name}
        | {"priority": each.priority, "exist": each.exist}
        for each in found.pods
    ]
    return {
        **found.as_json(),
        "tenant": found.tenant.name if found.tenant else None,
        "standing": standing_of(found),
        "gpus": as_number(found.gpus),
        "pods": pods,
        "findings": found.findings,
    }
