"""A pod as preemption knows it: what it needs, what it uses on its node, and what forbids to judge it.

Sources: KEP-753 (the effective request of a pod with sidecars), KEP-2837 (resources of a pod as a whole), KEP-5004
(extended resources by DRA).
"""

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

import msgspec
from msgspec import field

from webhook.objects.pods import Container, Metadata, Pod, PodSpec, Quantity, Resources, Volume
from webhook.objects.quantities import quantity
from webhook.objects.refusal import Phrase
from webhook.objects.times import unix_seconds
from webhook.objects.view import View, listed, mapped, view
from webhook.policy.assignment.request import gang_beyond
from webhook.policy.quota.demand import NOTHING
from webhook.policy.quota.tenant_quotas import LabelSelector, requirements_of
from webhook.policy.values.tier_policy import TierPolicy

MIRROR = "kubernetes.io/config.mirror"
DEFAULT_GRACE = 30
PREEMPTED = "PreemptionByGpuTiers"
"""The reason in the condition DisruptionTarget of a pod that was evicted for another one's devices."""

Port = tuple[str, str, int]
"""The address, the protocol and the number of a port of the node."""
Amounts = Mapping[str, Decimal]


class _Port(View, frozen=True):
    host_port: int = 0
    host_ip: str = field(default="", name="hostIP")
    protocol: str = "TCP"


class _Container(Container, frozen=True):
    ports: tuple[_Port, ...] = ()  # type: ignore[assignment]


class _Volume(Volume, frozen=True):
    persistent_volume_claim: Any = None
    ephemeral: Any = None


class _Spec(PodSpec, frozen=True):
    containers: tuple[_Container, ...] = ()
    init_containers: tuple[_Container, ...] = ()
    overhead: dict[str, Quantity] = field(default_factory=dict)
    resources: Resources = Resources()
    volumes: tuple[_Volume, ...] = ()


class _Metadata(Metadata, frozen=True):
    resource_version: str = ""


class _Condition(View, frozen=True):
    type: str = ""
    status: str = ""
    reason: str = ""
    last_transition_time: str | None = None


class _MadeClaim(View, frozen=True):
    name: str = ""
    resource_claim_name: str | None = None


class _Status(View, frozen=True):
    conditions: tuple[_Condition, ...] = ()
    nominated_node_name: str = ""
    resource_claim_statuses: tuple[_MadeClaim, ...] = ()
    start_time: str | None = None


class Repelled(View, frozen=True):
    """The pods that a term of anti-affinity keeps away: those of its namespaces, or of the pod's own."""

    label_selector: LabelSelector | None = None
    namespaces: tuple[str, ...] = ()
    namespace_selector: Any = None

    def selects(self, labels: Mapping[str, str]) -> bool:
        return self.label_selector is not None and all(
            line.matches(labels) for line in requirements_of(self.label_selector)
        )


class _Repelled(View, frozen=True):
    terms: tuple[Repelled, ...] = ()


class SchedulablePod(Pod, frozen=True):
    """A pod with the fields that the scheduler reads."""

    metadata: _Metadata = _Metadata()
    spec: _Spec = _Spec()
    status: _Status = _Status()


class PodState(msgspec.Struct, frozen=True, eq=False):
    """A pod that has not ended.

    `gang` is what it is of use only together with: a PodGroup, a workload, or the pod itself. `claims` are its
    ResourceClaims as namespace/name, "" for one that is not made yet. `ends_at` is when its grace period is over, in
    seconds since 1970; None while nobody deletes it. `waits_since` is when the scheduler first found no node for it,
    None where it has a node or nobody has looked. `spec` is kept of a pod without a node. `repels` is
    its required anti-affinity. `unjudged` is the first of its fields that forbids to judge it.
    """

    uid: str
    version: str
    namespace: str
    name: str
    node: str
    priority: int
    class_name: str
    gang: str
    pod_group: str
    labels: Mapping[str, str]
    requests: Amounts
    claims: tuple[str, ...]
    ports: frozenset[Port]
    grace: int
    started_at: float
    ends_at: float | None
    is_static: bool
    repels: tuple[Repelled, ...]
    waits_since: float | None = None
    nominated: str = ""
    spec: PodSpec | None = None
    unjudged: Phrase | None = None

    @property
    def shown(self) -> str:
        return f"{self.namespace}/{self.name}"


def pod_state(found: SchedulablePod, policy: TierPolicy) -> PodState:
    """Reduce a pod. Raises Refused for a quantity that is none."""
    metadata, spec, status = found.metadata, found.spec, found.status
    made = {each.name: each.resource_claim_name for each in status.resource_claim_statuses}
    # A claim that the controller found to be not needed has a status without a name.
    names = [
        each.resource_claim_name or made.get(each.name, "")
        for each in spec.resource_claims
        if each.resource_claim_name or each.name not in made or made[each.name]
    ]
    group = f"{metadata.namespace}/{spec.scheduling_group.pod_group_name}" if spec.scheduling_group else ""
    made_by_gang = metadata.controller_uid if policy.kinds.is_gang(metadata.controller) else ""
    unscheduled = next((each for each in status.conditions if each.type == "PodScheduled"), _Condition())
    waits = not spec.node_name and (unscheduled.status, unscheduled.reason) == ("False", "Unschedulable")
    return PodState(
        uid=metadata.uid,
        version=metadata.resource_version,
        namespace=metadata.namespace,
        name=metadata.name,
        node=spec.node_name,
        priority=spec.priority or 0,
        class_name=spec.priority_class_name,
        gang=group or gang_beyond(metadata) or made_by_gang or metadata.uid,
        pod_group=group,
        labels=metadata.labels,
        requests=_requested(spec),
        claims=tuple(f"{metadata.namespace}/{name}" if name else "" for name in names),
        ports=frozenset(_ports(spec)),
        grace=DEFAULT_GRACE if (own := spec.termination_grace_period_seconds) is None else own,
        started_at=unix_seconds(status.start_time) or 0.0,
        ends_at=unix_seconds(metadata.deletion_timestamp),
        is_static=MIRROR in metadata.annotations,
        repels=view({"terms": _required(spec.affinity.pod_anti_affinity)}, _Repelled).terms,
        waits_since=unix_seconds(unscheduled.last_transition_time) or 0.0 if waits else None,
        nominated=status.nominated_node_name,
        spec=None if spec.node_name else spec,
        unjudged=_unjudged(spec, policy),
    )


def _requested(spec: _Spec) -> dict[str, Decimal]:
    """Return what a pod asks for of each resource: the most that it needs while it starts or while it runs."""
    running, peaks = dict[str, Decimal](), list[dict[str, Decimal]]()
    for each in spec.init_containers:
        asked = _asked(each.resources)
        if each.is_sidecar:
            running = _sum(running, asked)
        else:
            peaks.append(_sum(running, asked))
    for container in spec.containers:
        running = _sum(running, _asked(container.resources))
    names = {name for each in (running, *peaks) for name in each}
    most = {name: max(each.get(name, NOTHING) for each in (running, *peaks)) for name in names}
    overhead = {name: quantity(value, f"spec.overhead.{name}") for name, value in spec.overhead.items()}
    return _sum({**most, **_asked(spec.resources)}, overhead)


def _asked(resources: Resources) -> dict[str, Decimal]:
    return {name: quantity(value, name) for name, value in {**resources.limits, **resources.requests}.items()}


def _sum(one: Amounts, other: Amounts) -> dict[str, Decimal]:
    return {name: one.get(name, NOTHING) + other.get(name, NOTHING) for name in one.keys() | other.keys()}


def _ports(spec: _Spec) -> Iterator[Port]:
    for _, container in spec.every_container():
        for port in container.ports:
            if isinstance(port, _Port) and port.host_port:
                yield port.host_ip or "0.0.0.0", port.protocol, port.host_port


def _required(affinity: object) -> list[Any]:
    return listed(mapped(affinity).get("requiredDuringSchedulingIgnoredDuringExecution"))


def _unjudged(spec: _Spec, policy: TierPolicy) -> Phrase | None:
    """Return what of a pod forbids to say which node it fits."""
    if _required(spec.affinity.pod_affinity) or _required(spec.affinity.pod_anti_affinity):
        return Phrase("unjudged-affinity")
    spread = listed(spec.topology_spread_constraints)
    if any(mapped(each).get("whenUnsatisfiable", "DoNotSchedule") == "DoNotSchedule" for each in spread):
        return Phrase("unjudged-spread")
    if any(each.persistent_volume_claim or each.ephemeral for each in spec.volumes):
        return Phrase("unjudged-volumes")
    starting = (each for each in spec.init_containers if not each.is_sidecar)
    if any(policy.weights.has_class(name) for each in starting for name in _asked(each.resources)):
        return Phrase("unjudged-init-devices")
    return None
