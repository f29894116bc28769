"""What becomes of the same objects under two policies, and what differs."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import Enum

import msgspec
from msgspec.structs import replace

from webhook.cli.cluster.gathering import Gathering
from webhook.cli.manifests.documents import Document
from webhook.cli.manifests.finding import verdict_of
from webhook.cli.manifests.offline import judged_quickly
from webhook.cluster.offline import ClusterAbout
from webhook.policy.quota.tenant_quotas import TENANT_QUOTA
from webhook.policy.quota.tenant_status import unknown_names
from webhook.policy.values.tenants import Tenant
from webhook.policy.values.tier_policy import TierPolicy
from webhook.policy.values.tiers import Tier
from webhook.report.object_verdict import NONE, ObjectVerdict, VerdictName


class Effect(Enum):
    """What a change means to whoever owns the object: the first that applies, as one and as several say it."""

    UNREADY = ("is no longer Ready", "are no longer Ready")
    READY = ("becomes Ready", "become Ready")
    REFUSED = ("is refused", "are refused")
    LET_IN = ("is let in", "are let in")
    GAINED = ("gets a tier", "get a tier")
    LOST = ("loses its tier", "lose their tier")
    UP = ("goes up", "go up")
    DOWN = ("goes down", "go down")
    MOVED = ("changes its tier", "change their tier")
    HOOK = ("changes its hook", "change their hook")
    WARNED = ("changes its warnings", "change their warnings")


class FieldChange(msgspec.Struct, frozen=True):
    """A field that differs; a tier with the step that decided it, a refusal with its sentence."""

    field: str
    old: str
    new: str


class ObjectChange(msgspec.Struct, frozen=True):
    """An object of which something differs. `source` is its place in a file, "" in a cluster."""

    source: str
    kind: str
    namespace: str
    name: str
    effect: Effect
    fields: tuple[FieldChange, ...]


def change_of(old: ObjectVerdict, new: ObjectVerdict, policy: TierPolicy) -> ObjectChange | None:
    """How the two differ under the new policy; None where they don't."""
    fields = tuple(_fields(old, new))
    if not fields:
        return None
    return ObjectChange(new.source, new.kind, new.namespace, new.name, _effect(old, new, policy), fields)


def changes_summary(changes: Sequence[ObjectChange], objects: int) -> str:
    """Such as: `3 of 120 objects change: 1 is refused, 2 go up`."""
    counts = Counter(each.effect for each in changes)
    effects = ", ".join(f"{counts[each]} {each.value[counts[each] > 1]}" for each in Effect if counts[each])
    change = "changes" if len(changes) == 1 else "change"
    told = f": {effects}" if effects else ""
    return f"{len(changes)} of {objects} {'object' if objects == 1 else 'objects'} {change}{told}"


def tenant_changes(tenants: Iterable[Tenant], old: TierPolicy, new: TierPolicy) -> Iterator[ObjectChange]:
    """The TenantQuotas all of whose names only one of the policies has: the condition Ready changes."""
    for each in sorted(tenants, key=lambda tenant: tenant.name):
        before, after = (
            "; ".join(f"{reason}: {told}" for reason, told in unknown_names(each, policy)) for policy in (old, new)
        )
        if bool(before) != bool(after):
            field = FieldChange("Ready", before or "InForce", after or "InForce")
            effect = Effect.UNREADY if after else Effect.READY
            yield ObjectChange("", TENANT_QUOTA.kind, "", each.name, effect, (field,))


def _fields(before: ObjectVerdict, after: ObjectVerdict) -> Iterator[FieldChange]:
    """What differs. Of what is refused under either policy nothing but that: it does not run."""
    denied = [each.verdict is VerdictName.DENIED for each in (before, after)]
    if any(denied):
        yield from () if all(denied) else (FieldChange("verdict", _with_reason(before), _with_reason(after)),)
        return
    if before.verdict is not after.verdict:
        yield FieldChange("verdict", before.verdict, after.verdict)
    if before.ranks != after.ranks:
        yield FieldChange("tier", _with_step(before), _with_step(after))
    if before.hooks_with_grace != after.hooks_with_grace:
        yield FieldChange("hook", before.hooks_with_grace, after.hooks_with_grace)
    if set(before.warnings) != set(after.warnings):
        gone = [each for each in before.warnings if each not in after.warnings]
        come = [each for each in after.warnings if each not in before.warnings]
        yield FieldChange("warnings", "; ".join(gone) or NONE, "; ".join(come) or NONE)


def _with_reason(found: ObjectVerdict) -> str:
    reason = found.message or _with_step(found)
    return found.verdict if reason == NONE else f"{found.verdict}: {reason}"


def _with_step(found: ObjectVerdict) -> str:
    return f"{found.ranks} ({found.step})" if found.tiers else NONE


def _effect(before: ObjectVerdict, after: ObjectVerdict, policy: TierPolicy) -> Effect:
    if (before.verdict is VerdictName.DENIED) != (after.verdict is VerdictName.DENIED):
        return Effect.REFUSED if after.verdict is VerdictName.DENIED else Effect.LET_IN
    if bool(before.tiers) != bool(after.tiers):
        return Effect.GAINED if after.tiers else Effect.LOST
    if before.ranks != after.ranks:
        return _direction(before.tiers[0], after.tiers[0], policy)
    return Effect.HOOK if before.hooks_with_grace != after.hooks_with_grace else Effect.WARNED


def _direction(old: Tier, new: Tier, policy: TierPolicy) -> Effect:
    """Up or down where the new policy ranks both tiers, or the tier of one name has another value."""
    value = old.value
    if old.name != new.name:
        known = policy.tiers.get(old.name)
        value = known.value if known else new.value
    if value == new.value:
        return Effect.MOVED
    return Effect.UP if new.value > value else Effect.DOWN


class Comparison:
    """What becomes of objects under the old policy and the new one, by themselves or as workloads that are gathered."""

    def __init__(self, judged_by: Callable[[TierPolicy], ClusterAbout], old: TierPolicy, new: TierPolicy) -> None:
        self._ways = [(judged_by(policy), policy) for policy in (old, new)]
        self.gathering: Gathering[tuple[bool, ObjectChange | None]] = Gathering(both(old, new).kinds, self.judged)

    @property
    def objects(self) -> int:
        """The workloads that either policy says anything of."""
        return sum(any(concerned for concerned, _ in each.judged) for each in self.gathering.found.values())

    @property
    def changes(self) -> list[ObjectChange]:
        """One of each workload at the most, by namespace, kind and name."""
        found = []
        for each in self.gathering.found.values():
            change = next((change for _, change in each.judged if change), None)
            if change:
                found.append(replace(change, kind=each.kind.kind, name=each.name))
        return sorted(found, key=lambda each: (each.namespace, each.kind, each.name))

    async def judged(self, document: Document) -> tuple[bool, ObjectChange | None]:
        """Whether either policy says anything of an object, and what changes."""
        old, new = [
            verdict_of(await judged_quickly(document, facts(document), policy), adoption=policy.adoption)
            for facts, policy in self._ways
        ]
        concerned = any(each.verdict is not VerdictName.LEFT_ALONE for each in (old, new))
        return concerned, change_of(old, new, self._ways[1][1])


def both(old: TierPolicy, new: TierPolicy) -> TierPolicy:
    """A policy that knows the kinds and counts the GPUs of both: what either leaves alone is read too."""
    others = tuple(row for row in old.kinds.rows if row.group_kind not in new.kinds.by_kind)
    return replace(
        new,
        kinds=new.kinds.with_rows(others),
        resources=(*old.resources, *new.resources),
        device_classes=(*old.device_classes, *new.device_classes),
        shares=tuple(dict.fromkeys((*old.shares, *new.shares))),
    )
