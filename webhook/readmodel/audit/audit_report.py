"""An audit as people and programs read it: counts by tenant and tier, each workload, and the findings."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from decimal import Decimal

from webhook.policy.values.tier_policy import TierPolicy
from webhook.readmodel.audit.audited import Audited, AuditStanding, PodsAlike, standing_of
from webhook.readmodel.audit.contradictions import demand_over_quota, findings_of
from webhook.readmodel.lint.rule import LintFinding, Severity
from webhook.readmodel.shown import Gpus, Shown, as_number

NONE = "none"
QUOTAS_AS_IF_EMPTY = "Quotas are judged as if nothing ran; gpu-tiers explain and why-pending ask what has room now."


class Share(Shown, frozen=True):
    """So many workloads, and the GPUs of their pods."""

    workloads: int
    gpus: Gpus


class AuditCounts(Shown, frozen=True):
    """All workloads of a tenant that get or have a tier, and how they stand. `tenant` is "none" where nobody's is."""

    tenant: str
    tier: str
    all: Share
    agrees: Share
    changed: Share
    refused: Share
    before: Share


class PodsShown(Shown, frozen=True):
    """Pods with the same class, and their GPUs; `exist`: they are there, else the template would make them."""

    count: int
    gpus: Gpus
    class_name: str
    priority: int
    exist: bool


class AuditedShown(Shown, frozen=True):
    """A workload: what the policy would do to it, and the ids of what contradicts it."""

    kind: str
    group: str
    namespace: str
    name: str
    source: str
    tenant: str
    standing: AuditStanding
    verdict: str
    tier: str
    decided_by: str
    workload_type: str
    evidence: str
    grade: str
    hook: str
    message: str
    gpus: Gpus
    pods: tuple[PodsShown, ...]
    warnings: tuple[str, ...]
    findings: tuple[str, ...]


class AuditReport(Shown, frozen=True):
    """A whole audit. `notes` are sentences on what was left out."""

    mode: str
    total: AuditCounts
    tenants: tuple[AuditCounts, ...]
    findings: tuple[LintFinding, ...]
    workloads: tuple[AuditedShown, ...]
    notes: tuple[str, ...] = ()

    def fails(self, least: Severity) -> bool:
        """Whether something is as bad as that."""
        return any(each.severity.reaches(least) for each in self.findings)


def audit_report(
    audited: Iterable[Audited], policy: TierPolicy, ignored: Collection[str] = (), notes: Sequence[str] = ()
) -> AuditReport:
    """The report, those rules aside that are ignored. Errors come first."""
    ordered = sorted(audited, key=lambda each: (_tenant(each), each.namespace, each.kind, each.name, each.source))
    told = {id(each): [f for f in findings_of(each, policy) if f.id not in ignored] for each in ordered}
    of_tenants = [each for each in demand_over_quota(ordered) if each.id not in ignored]
    found = [*(each for some in told.values() for each in some), *of_tenants]
    severities = list(Severity)
    return AuditReport(
        mode=policy.mode.name,
        total=_counts("all", "-", ordered),
        tenants=tuple(_by_tenant(ordered, policy)),
        findings=tuple(sorted(found, key=lambda each: severities.index(each.severity))),
        workloads=tuple(_shown(each, told[id(each)]) for each in ordered),
        notes=tuple(notes),
    )


def quota_note(audited: Iterable[Audited]) -> Iterator[str]:
    """On workloads without pods in a tenant with a quota: why they have none may be that it is full."""
    waiting = (each for each in audited if each.tier and not each.refusal and not each.existing)
    if any(each.tenant and each.tenant.rows for each in waiting):
        yield QUOTAS_AS_IF_EMPTY


def _by_tenant(audited: Sequence[Audited], policy: TierPolicy) -> Iterator[AuditCounts]:
    """The highest tier first; what gets none comes last."""
    groups: dict[tuple[str, str], list[Audited]] = {}
    for each in audited:
        groups.setdefault((_tenant(each), each.counted_as), []).append(each)
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


def _shown(found: Audited, told: Sequence[LintFinding]) -> AuditedShown:
    return AuditedShown(
        kind=found.kind,
        group=found.group,
        namespace=found.namespace,
        name=found.name,
        source=found.source,
        tenant=_tenant(found),
        standing=standing_of(found),
        verdict=found.verdict,
        tier=found.tier or NONE,
        decided_by=found.decided_by,
        workload_type=found.workload_type,
        evidence=found.evidence,
        grade=found.grade,
        hook=found.hook.kind if found.hook else NONE,
        message=found.refusal,
        gpus=as_number(found.gpus),
        pods=tuple(map(_pods, found.pods)),
        warnings=found.warnings,
        findings=tuple(each.id for each in told),
    )


def _pods(found: PodsAlike) -> PodsShown:
    return PodsShown(found.count, as_number(found.gpus), found.class_name, found.priority, found.exist)
