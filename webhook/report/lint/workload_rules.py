"""Rules about workloads: contradictions to the policy, and tenants whose workloads exceed their quota."""

from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal

from webhook.objects.quantities import written, written_gpus
from webhook.objects.refusal import Reason
from webhook.policy.values.tenants import QuotaRow, Tenant
from webhook.policy.values.tier_policy import TierPolicy
from webhook.report.lint.rule import Check, Mistake, Severity, rule
from webhook.report.lint.snapshot import (
    Audited,
    ClusterSnapshot,
    PodsAlike,
    number_of,
    some_of,
    with_another_class,
    without_hook,
)
from webhook.report.object_verdict import VerdictName
from webhook.sentences.sentence import warning_words


def of_each(check: Callable[[Audited, TierPolicy], str]) -> Check:
    """Return a check that calls this function for each workload. It returns the workload's problem, "" for none."""

    def mistakes(snapshot: ClusterSnapshot) -> Iterator[Mistake]:
        for each in snapshot.workloads:
            what = check(each, snapshot.policy)
            if what:
                yield Mistake(str(each), what, each)

    return mistakes


@rule("would-be-refused", Severity.ERROR, "workloads")
@of_each
def refused(found: Audited, _: TierPolicy) -> str:
    """Return the refusal, unless the ceiling refuses, which has a rule of its own."""
    return "" if found.reason is Reason.CEILING else found.message


@rule("tier-not-allowed", Severity.ERROR, "workloads")
@of_each
def beyond_ceiling(found: Audited, policy: TierPolicy) -> str:
    """Find a tier above the ceiling that the workload asks for, or that its pods run in."""
    tenant = found.tenant
    if found.message:
        return found.message if found.reason is Reason.CEILING else ""
    tiers = ((each, policy.tiers.of_class(each.class_name)) for each in found.existing if tenant)
    beyond = [each for each, tier in tiers if tenant and tier and not tenant.may_use(tier, policy.tiers)]
    return f"{_pods(beyond)} {_classes(beyond)}, which tenant {tenant.name} may not use" if tenant and beyond else ""


@rule("other-class", Severity.WARNING, "workloads")
@of_each
def other_class(found: Audited, policy: TierPolicy) -> str:
    """Find pods with the class of a tier, but not the class or priority that new pods get."""
    other = [each for each in with_another_class(found) if policy.tiers.of_class(each.class_name)]
    return f"{_pods(other)} {_classes(other)}; new pods get {_due(found)}" if other else ""


@rule("foreign-class", Severity.WARNING, "workloads")
@of_each
def foreign_class(found: Audited, policy: TierPolicy) -> str:
    """Find pods, or else a template, with a PriorityClass that is not a tier's."""
    foreign = [each for each in found.pods if each.class_name and policy.tiers.of_class(each.class_name) is None]
    if not foreign or found.message:
        return ""
    given = f"new pods get {_due(found)}" if found.classes else "new pods keep it"
    there = [each for each in foreign if each.exist]
    names = some_of(each.class_name for each in foreign)
    return f"{f'{_pods(there)} {_classes(there)}' if there else f'names {names}'}, which is no tier; {given}"


@rule("hook-missing", Severity.WARNING, "workloads")
@of_each
def hook_missing(found: Audited, _: TierPolicy) -> str:
    """Find existing pods without the hook, or for sigterm without the grace period, that new pods get."""
    bare = without_hook(found)
    if not bare:
        return ""
    hook = found.hooks[0]
    hook_name = f"{hook.grace_period_seconds} s of grace" if hook.kind == "sigterm" else f"the {hook.kind} hook"
    return f"{_pods(bare, 'lack', 'lacks')} {hook_name} that {found.workload_type} gets"


@rule("before-webhook", Severity.WARNING, "workloads")
@of_each
def before_webhook(found: Audited, _: TierPolicy) -> str:
    """Find pods without the annotation that gpu-tiers writes on each pod."""
    unmarked = [each for each in found.existing if not each.marked]
    due = "new pods are refused" if found.message else f"new pods get {found.due or 'no tier'}"
    return f"{_pods(unmarked)} {_classes(unmarked)}; {due}" if unmarked else ""


@rule("unknown-key", Severity.WARNING, "workloads")
@of_each
def unknown_key(found: Audited, _: TierPolicy) -> str:
    """Find unknown keys of the workload or its templates, because the warning at its creation may have gone unread."""
    return "; ".join(warning_words(each) for each in found.shown_warnings if each.id == "unknown-key")


@rule("demand-over-quota", Severity.WARNING, "workloads")
def demand_over_quota(snapshot: ClusterSnapshot) -> Iterator[Mistake]:
    """Find rows that the pods of a tenant exceed. A pod without a tier counts in the tier that a new pod would get."""
    drawn: dict[str, tuple[Tenant, list[Audited]]] = {}
    for each in snapshot.workloads:
        must_queue = bool(each.existing) or not each.message
        if must_queue and each.tenant and not each.tenant.charged_elsewhere:
            drawn.setdefault(each.tenant.name, (each.tenant, []))[1].append(each)
    for name, (tenant, found) in sorted(drawn.items()):
        for row in tenant.rows:
            demand, bare = (sum((_drawn(each, row, bare=bare) for each in found), Decimal(0)) for bare in (False, True))
            if demand + bare > row.hard:
                unclassed = f", {written(bare)} of them in pods without a tier's class" if bare and row.tier else ""
                queues = " and onExceed Hold" if tenant.on_exceed == "Hold" or row.has_queue else ""
                take, hard = written(demand + bare), written(row.hard)
                what = f"{row.subject}: its workloads take {take} GPUs{unclassed}; the row has {hard}{queues}"
                yield Mistake(f"TenantQuota/{name}", what)


def _drawn(found: Audited, row: QuotaRow, *, bare: bool) -> Decimal:
    """Return the GPUs that count in a row, of pods that have a tier or of `bare` ones that have none yet.

    Existing pods count by their class, as in the ledger, and other pods by the tier that new ones get. A new pod of a
    workload that would be demoted may get any tier with room, so it counts only in rows without a tier.
    """
    due = None if found.verdict is VerdictName.DEMOTED else found.counted_as or None
    counted = (each for each in found.pods if not each.wait and bare is (each.exist and each.tier is None))
    tiers = ((each, each.tier if each.exist and not bare else due) for each in counted)
    return sum((each.gpus for each, tier in tiers if row.counts(tier, each.flavor)), Decimal(0))


JUDGED_BY_ITSELF = (
    "Each workload is judged by itself, in a tenant that uses nothing; "
    "demand-over-quota names the rows too small for all."
)


def quota_note(audited: Iterable[Audited]) -> Iterator[str]:
    """Note that a quota may be too small for workloads that would each be admitted."""
    if any(each.tenant and each.tenant.rows for each in audited):
        yield JUDGED_BY_ITSELF


def _pods(found: Iterable[PodsAlike], have: str = "have", has: str = "has") -> str:
    """Return the number of pods, which may all be pending, and the verb, such as: 3 pods with 12 GPUs have."""
    there = list(found)
    count, gpus = sum(each.count for each in there), sum((each.gpus for each in there), Decimal(0))
    return f"{number_of(count, 'pod')} with {written_gpus(gpus)} {has if count == 1 else have}"


def _classes(found: Iterable[PodsAlike]) -> str:
    return some_of(f"{each.class_name or 'no PriorityClass'} ({each.priority})" for each in found)


def _due(found: Audited) -> str:
    return some_of(f"{name} ({value})" for name, value in found.classes.items())
