"""A workload with what the policy would do to it and with its pods, and where that leaves it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum

from webhook.objects.refusal import Reason
from webhook.policy.values.tenants import Tenant


class AuditStanding(StrEnum):
    """What the policy means to a workload: the first that applies."""

    REFUSED = "refused"
    BEFORE = "before"
    CHANGED = "changed"
    AGREES = "agrees"


@dataclass(frozen=True, slots=True)
class PodsAlike:
    """Pods of a workload that have the same: those that exist, or those that its template would make.

    `gpus` are those of all of them. `tier` is the one in whose rows they count, by their class. `marked`: gpu-tiers has
    seen them at admission. `hook`: each of their containers with GPUs has a preStop.
    """

    count: int
    gpus: Decimal
    class_name: str = ""
    priority: int = 0
    preempts: bool = True
    tier: str | None = None
    flavor: str | None = None
    exist: bool = True
    marked: bool = True
    demoted: bool = False
    hook: bool = False
    grace: int = 30


@dataclass(frozen=True, slots=True)
class HookDue:
    """The hook that the policy gives, with the grace period that it needs. `sigterm` is the grace alone."""

    kind: str
    grace: int

    def is_on(self, pods: PodsAlike) -> bool:
        """Whether these pods have it."""
        return pods.grace >= self.grace if self.kind == "sigterm" else pods.hook


@dataclass(frozen=True, slots=True)
class Audited:
    """A workload that holds GPUs or asks for a tier, judged as if it were created now, by itself.

    `verdict` is as `policy diff` and the policy tests have it. `classes` are those that its pods would get, with their
    values, and `tier` is "" where it gets none. `named`: somebody asked for the tier by name. `source` is its place in
    a file.
    """

    kind: str
    group: str
    namespace: str
    name: str
    verdict: str
    source: str = ""
    tenant: Tenant | None = None
    tier: str = ""
    classes: Mapping[str, int] = field(default_factory=dict)
    decided_by: str = ""
    named: bool = False
    workload_type: str = "unknown"
    evidence: str = ""
    grade: str = ""
    hook: HookDue | None = None
    refusal: str = ""
    reason: Reason = Reason.INVALID
    warnings: tuple[str, ...] = ()
    pods: tuple[PodsAlike, ...] = ()

    def __str__(self) -> str:
        place = f" ({self.source})" if self.source else ""
        return f"{self.kind}/{self.name} in {self.namespace}{place}"

    @property
    def existing(self) -> list[PodsAlike]:
        """Its pods that are there."""
        return [each for each in self.pods if each.exist]

    @property
    def gpus(self) -> Decimal:
        """The GPUs of all its pods."""
        return sum((each.gpus for each in self.pods), Decimal(0))

    @property
    def counted_as(self) -> str:
        """The tier that it would get, else the one that its pods count in; "" where there is none."""
        return self.tier or next((each.tier for each in self.pods if each.tier), "")


def with_another_class(found: Audited) -> list[PodsAlike]:
    """Pods that gpu-tiers has seen and that run as something else than new ones would; a demoted one has its reason."""
    due = found.classes
    held_to_it = (each for each in found.existing if due and each.marked and not each.demoted)
    return [each for each in held_to_it if due.get(each.class_name) != each.priority]


def without_hook(found: Audited) -> list[PodsAlike]:
    """Pods that lack the hook that new ones would get."""
    return [each for each in found.existing if found.hook and not found.hook.is_on(each)]


def standing_of(found: Audited) -> AuditStanding:
    """Where the policy leaves a workload. One without pods is changed if it gets a tier that it does not name."""
    if found.refusal:
        return AuditStanding.REFUSED
    if any(not each.marked for each in found.existing):
        return AuditStanding.BEFORE
    if found.existing:
        differs = with_another_class(found) or without_hook(found)
        return AuditStanding.CHANGED if differs else AuditStanding.AGREES
    return AuditStanding.AGREES if found.named and found.verdict == "Allowed" else AuditStanding.CHANGED
