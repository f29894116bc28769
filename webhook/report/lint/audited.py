"""A workload with what the policy would do to it and with its pods, and where that leaves it."""

from collections.abc import Mapping
from decimal import Decimal
from enum import StrEnum

import msgspec

from webhook.policy.values.tenants import Tenant
from webhook.report.object_verdict import HookDue, ObjectVerdict, VerdictName


class AuditStanding(StrEnum):
    """The state of a workload under the policy: the first that applies."""

    REFUSED = "refused"
    BEFORE = "before"
    CHANGED = "changed"
    AGREES = "agrees"


class PodsAlike(msgspec.Struct, frozen=True):
    """Like pods of a workload: those that exist, or those that its template would make.

    `gpus` are those of all of them. `tier` is the one in whose rows they count, by their class. `marked`: gpu-tiers has
    seen them at admission. `wait`: they are gated for quota, so they use nothing. `hook`: each of their containers with
    GPUs has a preStop.
    """

    count: int
    gpus: Decimal
    class_name: str = ""
    priority: int = 0
    tier: str | None = None
    flavor: str | None = None
    exist: bool = True
    marked: bool = True
    demoted: bool = False
    wait: bool = False
    hook: bool = False
    grace: int = 30


class Audited(ObjectVerdict, frozen=True, kw_only=True):
    """The verdict on a workload that has GPU pods or asks for a tier, with its pods.

    `classes` are those that its pods would get, with their values. `findings` are the ids of what contradicts it.
    """

    tenant: Tenant | None = None
    classes: Mapping[str, int] = msgspec.field(default_factory=dict)
    pods: tuple[PodsAlike, ...] = ()
    findings: tuple[str, ...] = ()

    def __str__(self) -> str:
        place = f" ({self.source})" if self.source else ""
        return f"{self.kind}/{self.name} in {self.namespace}{place}"

    @property
    def existing(self) -> list[PodsAlike]:
        return [each for each in self.pods if each.exist]

    @property
    def gpus(self) -> Decimal:
        return sum((each.gpus for each in self.pods), Decimal(0))

    @property
    def due(self) -> str:
        """Return the first tier that it would get; "" where there is none."""
        return self.tiers[0].name if self.tiers else ""

    @property
    def counted_as(self) -> str:
        """Return the tier that it would get, else the one that its pods count in; "" where there is none."""
        return self.due or next((each.tier for each in self.pods if each.tier), "")

    @property
    def by_tier(self) -> Mapping[str, tuple[PodsAlike, ...]]:
        """Return its pods by the tier that they count in: a demoted pod by its own, any other by that of a new one."""
        tiers = [each.tier if each.demoted and each.tier else self.counted_as for each in self.pods]
        there = {
            name: tuple(each for each, tier in zip(self.pods, tiers, strict=True) if tier == name) for name in tiers
        }
        return there or {self.counted_as: ()}


def with_another_class(found: Audited) -> list[PodsAlike]:
    """Return pods that gpu-tiers has seen and that run otherwise than new ones would, except demoted ones."""
    due = found.classes
    held_to_it = (each for each in found.existing if due and each.marked and not each.demoted)
    return [each for each in held_to_it if due.get(each.class_name) != each.priority]


def without_hook(found: Audited) -> list[PodsAlike]:
    hook = next(iter(found.hooks), None)
    return [each for each in found.existing if hook and not _has(each, hook)]


def _has(pods: PodsAlike, hook: HookDue) -> bool:
    """Tell whether pods have a hook; that of `sigterm` is the grace period alone."""
    return pods.grace >= hook.grace_period_seconds if hook.kind == "sigterm" else pods.hook


def standing_of(found: Audited) -> AuditStanding:
    """Return the state of a workload. One without pods is changed if it gets a tier that it does not name."""
    if found.message:
        return AuditStanding.REFUSED
    if any(not each.marked for each in found.existing):
        return AuditStanding.BEFORE
    if found.existing:
        differs = with_another_class(found) or without_hook(found)
        return AuditStanding.CHANGED if differs else AuditStanding.AGREES
    named = found.assignment is not None and bool(found.assignment.asked)
    agrees = named and found.verdict is VerdictName.ALLOWED
    return AuditStanding.AGREES if agrees else AuditStanding.CHANGED
