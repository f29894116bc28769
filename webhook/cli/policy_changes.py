"""What becomes of the same objects under two policies, and what differs."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

from webhook.cli.alone import judged_quickly
from webhook.cli.documents import Document
from webhook.cli.ruling import Ruling, VerdictName, ruling_of
from webhook.cluster.offline import OfflineCluster
from webhook.policy.values.tier_policy import TierPolicy
from webhook.policy.values.tiers import Tier, class_in_force

NONE = "none"


class Effect(Enum):
    """What a change means to whoever owns the object: the first that applies, as one and as several say it."""

    REFUSED = ("is refused", "are refused")
    LET_IN = ("is let in", "are let in")
    GAINED = ("gets a tier", "get a tier")
    LOST = ("loses its tier", "lose their tier")
    UP = ("goes up", "go up")
    DOWN = ("goes down", "go down")
    MOVED = ("changes its tier", "change their tier")
    HOOK = ("changes its hook", "change their hook")
    WARNED = ("changes its warnings", "change their warnings")


@dataclass(frozen=True, slots=True)
class Under:
    """An object under one policy, in the texts that are compared and shown."""

    policy: TierPolicy
    ruling: Ruling

    @property
    def tier(self) -> str:
        """Its tiers with what makes their rank: `gpu-training 1000`."""
        return ", ".join(self._ranked(tier) for tier in self.ruling.tiers) or NONE

    @property
    def hook(self) -> str:
        """Its hook and the grace that comes with it."""
        graces = ", ".join(map(str, self.ruling.graces))
        return f"{self.ruling.hook}, {graces} s of grace" if graces else self.ruling.hook

    def _ranked(self, tier: Tier) -> str:
        never = self.policy.adoption or tier.preemption_policy == "Never"
        name = class_in_force(tier, adoption=self.policy.adoption)
        return f"{name} {tier.value}{', evicts nobody' if never else ''}"


@dataclass(frozen=True, slots=True)
class FieldChange:
    """A field that differs; a tier with the step that decided it, a refusal with its sentence."""

    field: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class ObjectChange:
    """An object of which something differs. `source` is its place in a file, "" in a cluster."""

    source: str
    kind: str
    namespace: str
    name: str
    effect: Effect
    fields: tuple[FieldChange, ...]


async def ruled_under(document: Document, cluster: OfflineCluster, policy: TierPolicy) -> Under:
    """What becomes of an object by itself."""
    return Under(policy, ruling_of(await judged_quickly(document, cluster, policy)))


def change_of(document: Document, old: Under, new: Under) -> ObjectChange | None:
    """How the two differ; None where they don't."""
    fields = tuple(_fields(old, new))
    if not fields:
        return None
    return ObjectChange(document.source, document.kind, document.namespace, document.name, _effect(old, new), fields)


def changes_summary(changes: Sequence[ObjectChange], objects: int) -> str:
    """Such as: `3 of 120 objects change: 1 is refused, 2 go up`."""
    counts = Counter(each.effect for each in changes)
    effects = ", ".join(f"{counts[each]} {each.value[counts[each] > 1]}" for each in Effect if counts[each])
    change = "changes" if len(changes) == 1 else "change"
    told = f": {effects}" if effects else ""
    return f"{len(changes)} of {objects} {'object' if objects == 1 else 'objects'} {change}{told}"


def _fields(old: Under, new: Under) -> Iterator[FieldChange]:
    """What differs. Of what is refused under either policy nothing but that: it does not run."""
    before, after = old.ruling, new.ruling
    denied = [each.verdict is VerdictName.DENIED for each in (before, after)]
    if any(denied):
        yield from () if all(denied) else (FieldChange("verdict", _with_reason(old), _with_reason(new)),)
        return
    if before.verdict is not after.verdict:
        yield FieldChange("verdict", before.verdict, after.verdict)
    if old.tier != new.tier:
        yield FieldChange("tier", _with_step(old), _with_step(new))
    if old.hook != new.hook:
        yield FieldChange("hook", old.hook, new.hook)
    if set(before.warnings) != set(after.warnings):
        gone = [each for each in before.warnings if each not in after.warnings]
        come = [each for each in after.warnings if each not in before.warnings]
        yield FieldChange("warnings", "; ".join(gone) or NONE, "; ".join(come) or NONE)


def _with_reason(under: Under) -> str:
    ruling = under.ruling
    reason = ruling.message or _with_step(under)
    return ruling.verdict if reason == NONE else f"{ruling.verdict}: {reason}"


def _with_step(under: Under) -> str:
    return f"{under.tier} ({under.ruling.step})" if under.ruling.tiers else NONE


def _effect(old: Under, new: Under) -> Effect:
    before, after = old.ruling, new.ruling
    if (before.verdict is VerdictName.DENIED) != (after.verdict is VerdictName.DENIED):
        return Effect.REFUSED if after.verdict is VerdictName.DENIED else Effect.LET_IN
    if bool(before.tiers) != bool(after.tiers):
        return Effect.GAINED if after.tiers else Effect.LOST
    if old.tier != new.tier:
        return _direction(before.tiers[0], after.tiers[0], new.policy)
    return Effect.HOOK if old.hook != new.hook else Effect.WARNED


def _direction(old: Tier, new: Tier, policy: TierPolicy) -> Effect:
    """Up or down where the new policy ranks both tiers, or the tier of one name has another value."""
    value = old.value
    if old.name != new.name:
        known = policy.tiers.get(old.name)
        value = known.value if known else new.value
    if value == new.value:
        return Effect.MOVED
    return Effect.UP if new.value > value else Effect.DOWN
