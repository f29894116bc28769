"""An audit as people and programs read it: counts by tenant and tier, each workload, and the findings."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from decimal import Decimal
from typing import Any

import msgspec
from msgspec.structs import asdict, replace

from webhook.policy.values.tier_policy import TierPolicy
from webhook.report.lint import AUDIT_RULES
from webhook.report.lint.audited import Audited, AuditStanding, standing_of
from webhook.report.lint.rule import LintFinding
from webhook.report.lint.snapshot import ClusterSnapshot
from webhook.report.object_verdict import NONE
from webhook.report.shown import Gpus, Shown, as_number

QUOTAS_AS_IF_EMPTY = "Quotas are judged as if nothing ran; gpu-tiers explain and why-pending ask what has room now."


class Share(Shown, frozen=True):
    """A number of workloads, and the GPUs of their pods."""

    workloads: int
    gpus: Gpus


class AuditCounts(Shown, frozen=True):
    """The workloads of a tenant with a tier, and how many are in each state. `tenant` is "none" without a tenant.

    A workload with demoted pods is counted in each tier in which its pods run.
    """

    tenant: str
    tier: str
    all: Share
    agrees: Share
    changed: Share
    refused: Share
    before: Share

    @property
    def shares(self) -> tuple[Share, ...]:
        return self.all, self.agrees, self.changed, self.refused, self.before


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
    snapshot: ClusterSnapshot, ignored: Collection[str] = (), notes: Sequence[str] = (), unread: Sequence[str] = ()
) -> AuditReport:
    """Return the report on the snapshot's workloads, without the rules that are ignored. Errors come first."""
    by_name = sorted(
        snapshot.workloads, key=lambda each: (_tenant(each), each.namespace, each.kind, each.name, each.source)
    )
    snapshot = replace(snapshot, workloads=tuple(by_name))
    asked = [rule for rule in AUDIT_RULES if rule.id not in ignored]
    found = [(mistake.workload, rule.finding(mistake)) for rule in asked for mistake in rule.check(snapshot)]
    ids: dict[int, list[str]] = {id(each): [] for each in by_name}
    for about, finding in found:
        ids.get(id(about), []).append(finding.id)
    places = {key: place for place, key in enumerate(ids)}
    found.sort(key=lambda each: (each[1].severity.rank, places.get(id(each[0]), len(places))))
    return AuditReport(
        mode=snapshot.policy.mode.name,
        total=_counts("all", "-", by_name),
        tenants=tuple(_by_tenant(by_name, snapshot.policy)),
        findings=tuple(finding for _, finding in found),
        workloads=tuple(replace(each, findings=tuple(ids[id(each)])) for each in by_name),
        notes=tuple(notes),
        unread=tuple(unread),
    )


def quota_note(audited: Iterable[Audited]) -> Iterator[str]:
    """Note that a full quota may be why workloads of a tenant have no pods."""
    waiting = (each for each in audited if each.tiers and not each.message and not each.existing)
    if any(each.tenant and each.tenant.rows for each in waiting):
        yield QUOTAS_AS_IF_EMPTY


def _by_tenant(audited: Sequence[Audited], policy: TierPolicy) -> Iterator[AuditCounts]:
    """Yield counts by tenant and tier, the highest tier first, and last those without."""
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
