"""Posture: which tier can evict which, what evicted workloads save, and what each tenant may use.

Source: https://kubernetes.io/docs/concepts/scheduling-eviction/pod-priority-preemption/ (a pending pod evicts pods of a
lower priority, unless its preemptionPolicy is Never; of equal priority nobody is evicted).
"""

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Literal, Self

from webhook.kube.client import RFC_3339
from webhook.objects.quantities import written
from webhook.objects.refusal import Phrase, Refused, first_of
from webhook.policy.checkpoint.hook_plan import longest_save
from webhook.policy.checkpoint.work_lost import Work
from webhook.policy.preemption.reservation import Reservation
from webhook.policy.quota.tenant_status import unknown_and_effect, unknown_names
from webhook.policy.values.gpu_supply import NO_SUPPLY, GpuSupply, evicts_for_devices
from webhook.policy.values.tenants import Tenant
from webhook.policy.values.tier_policy import HookKind, TierPolicy
from webhook.policy.values.tiers import PriorityClass, Tier, live_class
from webhook.report.shown import Shown
from webhook.sentences.sentence import sentence


class TierPosture(Shown, frozen=True):
    """A tier: its victims, its evictors, the workloads that get it by default, and their saves at an eviction.

    `workloads` are workload types, and "any other" for the default tier. `hooks` are those of each type that saves, if
    its pods run in this tier. `refused` says why pods of this tier are refused now; its value is then the policy's.
    `at_risk` is the loss if all its training pods were evicted now, None unless requested. `max_at_risk` are the
    seconds of unsaved work after which its pods are asked to save.
    """

    name: str
    value: int
    preemption_policy: str
    evicts: tuple[str, ...]
    evicted_by: tuple[str, ...]
    workloads: tuple[str, ...]
    hooks: tuple[str, ...]
    description: str = ""
    refused: str = ""
    at_risk: Work | None = None
    max_at_risk: int | None = None


class ClassPosture(Shown, frozen=True):
    """A PriorityClass of no tier, and the tiers whose pods its pods evict."""

    name: str
    value: int
    evicts: tuple[str, ...]


class TenantPosture(Shown, frozen=True):
    """The limits of a tenant, and the action beyond them. `unknown` are its names that the policy lacks.

    `not_ready` is the reason of its TenantQuota's condition Ready, with its message, if it is not Ready.
    """

    name: str
    ceiling: str
    default_tier: str | None
    quotas: tuple[str, ...]
    on_exceed: str
    unknown: tuple[str, ...] = ()
    not_ready: str = ""


class DraPosture(Shown, frozen=True):
    """The GPUs of a DeviceClass, which come by DRA on some nodes: there no tier evicts anybody for them.

    On the nodes with a device plugin for its extended resource the tiers evict as usual.
    """

    device_class: str
    extended_resource: str
    evicts_nobody_on: tuple[str, ...]
    evicts_on: tuple[str, ...]

    @property
    def said(self) -> str:
        names = f"devices of {self.device_class}" + (f" and {self.extended_resource}" if self.extended_resource else "")
        plugin = f"; on {nodes_said(self.evicts_on)} a device plugin has {self.extended_resource}, and they do"
        return f"no tier evicts anybody for {names} on {nodes_said(self.evicts_nobody_on)}: these come by DRA" + (
            plugin if self.evicts_on else ""
        )


class NodeReservation(Shown, frozen=True):
    """The nodes of one reservation. `pod` is one of the pods that they are reserved for, with the number of the others.

    `until` is in RFC 3339.
    """

    nodes: tuple[str, ...]
    pod: str
    tier: str
    until: str

    @classmethod
    def of(cls, found: Reservation, pod: str = "") -> Self:
        """Return the reservation as it is shown to this pod, or to others with the name of its first pod."""
        pods, others = pod or found.name, len(found.pods) - 1
        pods += f" and {others} other pod{'s' if others > 1 else ''}" if others > 0 else ""
        return cls(found.nodes, pods, found.tier, datetime.fromtimestamp(found.until, UTC).strftime(RFC_3339))

    @property
    def said(self) -> str:
        return self._said("nodes-reserved-for-others")

    @property
    def said_to_its_pod(self) -> str:
        return self._said("nodes-reserved-for-it")

    def _said(self, phrase: str) -> str:
        return sentence(Phrase(phrase, nodes=self.nodes, pod=self.pod, tier=self.tier, until=self.until))


def reservations_shown(found: Iterable[Reservation]) -> tuple[NodeReservation, ...]:
    return tuple(sorted(map(NodeReservation.of, found), key=lambda each: each.nodes))


class Posture(Shown, frozen=True):
    """The posture, the highest tier first. `dra` is where tiers evict nobody, as far as the nodes are known.

    `reserved` are the nodes on which pods are evicted for devices of DRA now. `device_preemption` is the policy's.
    """

    mode: str
    adoption: bool
    tiers: tuple[TierPosture, ...]
    classes: tuple[ClassPosture, ...] = ()
    tenants: tuple[TenantPosture, ...] = ()
    dra: tuple[DraPosture, ...] = ()
    reserved: tuple[NodeReservation, ...] = ()
    device_preemption: str = "Off"


def posture_of(
    policy: TierPolicy,
    tenants: Iterable[Tenant] = (),
    classes: Mapping[str, PriorityClass] | None = None,
    supply: GpuSupply = NO_SUPPLY,
) -> Posture:
    """Return the posture of a policy, with the known tenants and PriorityClasses of a cluster.

    A tier whose PriorityClass is missing or differs in the cluster is `refused`, and has the policy's value.
    """
    live, refused = dict[str, PriorityClass](), dict[str, str]()
    for tier in policy.tiers:
        own: Literal["PreemptLowerPriority", "Never"] = "Never" if policy.adoption else tier.preemption_policy
        live[tier.name], refused[tier.name] = PriorityClass(tier.name, tier.value, own), ""
        try:
            if classes is not None:
                live[tier.name] = live_class(tier, classes, adoption=policy.adoption)
        except Refused as problem:
            refused[tier.name] = sentence(problem.refusal)
    foreign: list[ClassPosture] = []
    own_values = {tier.name: PriorityClass(tier.name, tier.value) for tier in policy.tiers}
    for each in sorted((classes or {}).values(), key=lambda found: (-found.value, found.name)):
        evicts = () if policy.tiers.of_class(each.name) else _lower(each, own_values)
        if evicts:
            foreign.append(ClassPosture(each.name, each.value, evicts))
    return Posture(
        mode=policy.mode.name,
        adoption=policy.adoption,
        tiers=tuple(_tier(tier, live, policy, refused[tier.name]) for tier in policy.tiers),
        classes=tuple(foreign),
        tenants=tuple(_tenant(each, policy) for each in sorted(tenants, key=lambda tenant: tenant.name)),
        dra=dra_posture(policy, supply),
        device_preemption=policy.device_preemption,
    )


def dra_posture(policy: TierPolicy, supply: GpuSupply) -> tuple[DraPosture, ...]:
    """Return the nodes on which no tier evicts anybody for GPUs by DRA, by DeviceClass.

    There are none if the cluster's scheduler may evict for devices, or if gpu-tiers does (preemption.dra On).
    """
    if evicts_for_devices(supply.version) or policy.device_preemption == "On":
        return ()
    served = supply.served(policy.classes, policy.weights)
    return tuple(DraPosture(each.name, each.resource, each.by_devices, each.by_plugin) for each in served)


def nodes_said(names: tuple[str, ...]) -> str:
    """Return text such as: node a; 2 nodes (a, b)."""
    return f"node {names[0]}" if len(names) == 1 else f"{len(names)} nodes ({first_of(names, 3)})"


def _tier(tier: Tier, live: Mapping[str, PriorityClass], policy: TierPolicy, refused: str) -> TierPosture:
    own = live[tier.name]
    types = tuple(kind.value for kind, name in policy.tier_of_type.items() if name == tier.name)
    return TierPosture(
        name=tier.name,
        value=own.value,
        preemption_policy=own.preemption_policy,
        evicts=_lower(own, live),
        evicted_by=tuple(name for name, other in live.items() if tier.name in _lower(other, live)),
        workloads=(*types, "any other") if policy.default_tier == tier.name else types,
        hooks=tuple(dict.fromkeys(_hooks(tier, policy))),
        description=tier.description,
        refused=refused,
        max_at_risk=policy.saves.max_at_risk.get(tier.name),
    )


def _lower(own: PriorityClass, live: Mapping[str, PriorityClass]) -> tuple[str, ...]:
    if own.preemption_policy == "Never":
        return ()
    return tuple(name for name, other in live.items() if other.value < own.value)


def _hooks(tier: Tier, policy: TierPolicy) -> Iterator[str]:
    """Yield how victims in a tier save, by the policy and without annotations.

    All workload types are listed, because a label, a ceiling or a demotion may put any type into the tier.
    """
    given = policy.checkpoint
    of_tier = given.tiers.get(tier.name)
    asked = {"every type: ": of_tier} if of_tier else {f"{kind.value}: ": hook for kind, hook in given.hooks.items()}
    for hook_owner, hook in asked.items():
        if hook.kind not in _SAVES_NOTHING:
            yield f"{hook_owner}{hook.kind}, {min(hook.seconds, longest_save(given, tier.name))} s"


_SAVES_NOTHING: tuple[HookKind, ...] = ("none", "sleep")
"""The hooks that save nothing. A sleep lets requests end."""


def _tenant(tenant: Tenant, policy: TierPolicy) -> TenantPosture:
    allowed = [tier.name for tier in policy.tiers if tenant.may_use(tier, policy.tiers)]
    everything = len(allowed) == len([*policy.tiers])
    return TenantPosture(
        name=tenant.name,
        ceiling="any tier" if everything else ", ".join(allowed) or "no tier",
        default_tier=tenant.default_tier,
        quotas=tuple(f"{row.subject}: {written(row.hard)}" for row in tenant.rows),
        on_exceed=tenant.above_quota,
        unknown=tuple(map(unknown_and_effect, unknown_names(tenant, policy))),
    )
