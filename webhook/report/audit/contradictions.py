"""What an audit finds: where a workload contradicts the policy, and tenants that hold more than their quota."""

from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal
from typing import NamedTuple

from webhook.objects.quantities import written
from webhook.objects.refusal import Reason
from webhook.policy.values.tenants import QuotaRow, Tenant
from webhook.policy.values.tier_policy import TierPolicy
from webhook.report.audit.audited import Audited, PodsAlike, with_another_class, without_hook
from webhook.report.lint.rule import LintRule, Mistake, Severity
from webhook.report.lint.snapshot import number_of, some_of
from webhook.report.lint.untiered_pods import NAMESPACE_LABEL
from webhook.report.object_verdict import VerdictName
from webhook.sentences.sentence import warning_words


class WorkloadUnder(NamedTuple):
    """A workload, and the policy that it is judged by."""

    workload: Audited
    policy: TierPolicy


Check = Callable[[Audited, TierPolicy], str]
"""What is wrong with a workload; "" where nothing is."""


def refused(found: Audited, _: TierPolicy) -> str:
    """For whatever reason but the ceiling, which has a rule of its own."""
    return "" if found.reason is Reason.CEILING else found.message


def beyond_ceiling(found: Audited, policy: TierPolicy) -> str:
    """A tier that is asked for, or that pods run in."""
    if found.message:
        return found.message if found.reason is Reason.CEILING else ""
    beyond = [each for each in found.existing if not _may_run(each, found.tenant, policy)]
    tenant = found.tenant.name if found.tenant else ""
    return f"{_pods(beyond)} as {_classes(beyond)}, which tenant {tenant} may not use" if beyond else ""


def other_class(found: Audited, policy: TierPolicy) -> str:
    """One of a tier: those outside the tiers have a rule of their own."""
    other = [each for each in with_another_class(found) if policy.tiers.of_class(each.class_name)]
    return f"{_pods(other)} as {_classes(other)}; new pods get {_due(found)}" if other else ""


def foreign_class(found: Audited, policy: TierPolicy) -> str:
    """Of pods, or of the template where there is none."""
    tiers = policy.tiers
    foreign = [each for each in found.pods if each.class_name and tiers.of_class(each.class_name) is None]
    if not foreign or found.message:
        return ""
    given = f"new pods get {_due(found)}" if found.classes else "new pods keep it"
    there = [each for each in foreign if each.exist]
    names = some_of(each.class_name for each in foreign)
    return f"{f'{_pods(there)} as {_classes(there)}' if there else f'names {names}'}, which is no tier; {given}"


def hook_missing(found: Audited, _: TierPolicy) -> str:
    """Of pods that are there; new ones get it."""
    bare = without_hook(found)
    if not bare:
        return ""
    hook = found.hooks[0]
    lacks = f"{hook.grace_period_seconds} s of grace" if hook.kind == "sigterm" else f"the {hook.kind} hook"
    return f"{_pods(bare)} without {lacks} that {found.workload_type} gets"


def before_webhook(found: Audited, _: TierPolicy) -> str:
    """Pods without the annotation that gpu-tiers leaves on each."""
    unmarked = [each for each in found.existing if not each.marked]
    due = "new pods are refused" if found.message else f"new pods get {found.due or 'no tier'}"
    return f"{_pods(unmarked)} as {_classes(unmarked)}; {due}" if unmarked else ""


def unknown_key(found: Audited, _: TierPolicy) -> str:
    """Of the workload or of its templates: kubectl was told when it was applied, and perhaps nobody read it."""
    return "; ".join(warning_words(each) for each in found.told if each.id == "unknown-key")


def demand_over_quota(audited: Iterable[Audited]) -> Iterator[Mistake]:
    """Rows of tenants that are asked for more than they have, by the tiers of their pods."""
    drawn: dict[str, tuple[Tenant, list[Audited]]] = {}
    for each in audited:
        is_held = bool(each.existing) or not each.message
        if is_held and each.tenant and not each.tenant.charged_elsewhere:
            drawn.setdefault(each.tenant.name, (each.tenant, []))[1].append(each)
    for tenant, found in (drawn[name] for name in sorted(drawn)):
        for row in tenant.rows:
            demand = sum((_drawn(each, row) for each in found), Decimal(0))
            if demand > row.hard:
                what = f"{row.subject}: its workloads take {written(demand)} GPUs; the row has {written(row.hard)}"
                yield Mistake(f"TenantQuota/{tenant.name}", what)


def _drawn(found: Audited, row: QuotaRow) -> Decimal:
    """A pod that exists counts as the ledger counts it, by its class, marked or not; one to come as it would be let in.

    Of what would be demoted each pod gets a tier that has room, so that counts in the rows without a tier alone.
    """
    due = None if found.verdict is VerdictName.DEMOTED else found.counted_as or None
    counted = ((each, each.tier if each.exist else due) for each in found.pods if not each.wait)
    return sum((each.gpus for each, tier in counted if row.counts(tier, each.flavor)), Decimal(0))


def _may_run(pods: PodsAlike, tenant: Tenant | None, policy: TierPolicy) -> bool:
    tier = policy.tiers.of_class(pods.class_name)
    return tier is None or tenant is None or tenant.may_use(tier, policy.tiers)


def _pods(found: Iterable[PodsAlike]) -> str:
    """Such as: 3 pods with 12 GPUs run."""
    there = list(found)
    count, gpus = sum(each.count for each in there), sum((each.gpus for each in there), Decimal(0))
    runs = "run" if count != 1 else "runs"
    return f"{number_of(count, 'pod')} with {number_of_gpus(gpus)} {runs}"


def number_of_gpus(gpus: Decimal) -> str:
    """A number with its noun: 1 GPU, 0.5 GPUs."""
    return f"{written(gpus)} GPU{'' if gpus == 1 else 's'}"


def _classes(found: Iterable[PodsAlike]) -> str:
    return some_of(f"{each.class_name or 'no PriorityClass'} ({each.priority})" for each in found)


def _due(found: Audited) -> str:
    return some_of(f"{name} ({value})" for name, value in found.classes.items())


def _rule(name: str, severity: Severity, check: Check, fix: str) -> LintRule[WorkloadUnder]:
    """A rule about one workload."""

    def mistakes(about: WorkloadUnder) -> Iterator[Mistake]:
        what = check(about.workload, about.policy)
        if what:
            yield Mistake(str(about.workload), what)

    return LintRule(name, severity, (), mistakes, fix)


WORKLOAD_RULES = (
    _rule(
        "would-be-refused",
        Severity.ERROR,
        refused,
        "Do what the sentence says, or change the policy or the TenantQuota.",
    ),
    _rule(
        "tier-not-allowed",
        Severity.ERROR,
        beyond_ceiling,
        "Give the workload a tier that its tenant may use, or raise maxTier in the TenantQuota.",
    ),
    _rule(
        "other-class",
        Severity.WARNING,
        other_class,
        "Restart the workload, or leave it until it ends.",
    ),
    _rule(
        "foreign-class",
        Severity.WARNING,
        foreign_class,
        "Name a tier instead.",
    ),
    _rule(
        "hook-missing",
        Severity.WARNING,
        hook_missing,
        "Restart the workload so that its pods get the hook.",
    ),
    _rule(
        "before-webhook",
        Severity.WARNING,
        before_webhook,
        "Restart the workload.",
    ),
    _rule(
        "unknown-key",
        Severity.WARNING,
        unknown_key,
        "Correct the key, or leave it out, and apply the workload again.",
    ),
)
OVER_QUOTA: LintRule[Iterable[Audited]] = LintRule(
    "demand-over-quota",
    Severity.WARNING,
    (),
    demand_over_quota,
    "Raise the row in the TenantQuota, or have the tenant end or relabel some of its workloads.",
)
AUDIT_RULES = (*WORKLOAD_RULES, OVER_QUOTA, NAMESPACE_LABEL)
