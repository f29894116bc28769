"""A pod as preemption knows it: what it needs, what it takes of its node, and the field that can't be judged.

A resize changes what the pod asks for, what the kubelet has allocated, and what is in effect, one after the other. The
largest of these counts, as for kube-scheduler. A resize that the node can never grant does not count.

Sources: KEP-5004 (extended resources by DRA), KEP-753 (the effective request of a pod with sidecars), KEP-2837
(resources of a pod as a whole), KEP-1287 and KEP-5419 (resize in place), and PodRequests in
k8s.io/component-helpers/resource of Kubernetes 1.37.
"""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import msgspec
from msgspec import field

from webhook.objects.pods import Container, Metadata, Pod, PodSpec, Quantity, Resources
from webhook.objects.quantities import quantity
from webhook.objects.refusal import Phrase
from webhook.objects.storage import SINGLE_USE, UsedVolume, used_volumes
from webhook.objects.times import unix_seconds
from webhook.objects.view import View, listed, mapped, view
from webhook.policy.assignment.request import gang_beyond
from webhook.policy.checkpoint.hook_plan import grace_of
from webhook.policy.preemption.node_state import RESERVED, Amounts, StatusCondition
from webhook.policy.quota.demand import NOTHING, peak_request
from webhook.policy.quota.tenant_quotas import LabelSelector, requirements_of
from webhook.policy.values.tier_policy import TierPolicy

MIRROR = "kubernetes.io/config.mirror"
PREEMPTED = "PreemptionByGpuTiers"
"""The reason in the condition DisruptionTarget of a pod that was evicted for another one's devices."""

Port = tuple[str, str, int]
"""The address, the protocol and the number of a port of the node."""


class _Port(View, frozen=True):
    host_port: int = 0
    host_ip: str = field(default="", name="hostIP")
    protocol: str = "TCP"


class _Container(Container, frozen=True):
    ports: tuple[_Port, ...] = ()  # type: ignore[assignment]


class _Spec(PodSpec, frozen=True):
    containers: tuple[_Container, ...] = ()
    init_containers: tuple[_Container, ...] = ()
    overhead: dict[str, Quantity] = field(default_factory=dict)
    resources: Resources = Resources()
    volumes: tuple[dict[str, Any], ...] = ()  # type: ignore[assignment]


class _Metadata(Metadata, frozen=True):
    resource_version: str = ""


class _MadeClaim(View, frozen=True):
    name: str = ""
    resource_claim_name: str | None = None


class _Effective(View, frozen=True):
    requests: dict[str, Quantity] | None = None


class _ContainerStatus(View, frozen=True):
    name: str = ""
    allocated_resources: dict[str, Quantity] | None = None
    resources: _Effective = _Effective()


class _Status(View, frozen=True):
    container_statuses: tuple[_ContainerStatus, ...] = ()
    init_container_statuses: tuple[_ContainerStatus, ...] = ()
    allocated_resources: dict[str, Quantity] | None = None
    resources: _Effective | None = None
    conditions: tuple[StatusCondition, ...] = ()
    nominated_node_name: str = ""
    resource_claim_statuses: tuple[_MadeClaim, ...] = ()
    start_time: str | None = None


class Repelled(View, frozen=True):
    """A term of anti-affinity: it keeps the pods that it selects off nodes with the same value of `topology_key`.

    The pods are those of `namespaces`; without any, those of the namespace of the pod that has the term. A
    `namespace_selector` is not evaluated, and counts as every namespace.
    """

    topology_key: str = ""
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

    `gang` identifies the pods that are of use only together: namespace/name of a PodGroup, namespace/uid of a workload,
    or the pod's own uid. `claims` are its ResourceClaims as namespace/name, "" for one that is not made yet. `volumes`
    are its PersistentVolumeClaims. `ends_at` is when its grace period is over, in seconds since 1970; None while nobody
    deletes it. `waits_since` is when the scheduler first found no node for it; None if it has a node, or if its
    condition is another one. `spec` is None for a pod with a node. `repels` is its required anti-affinity. `unjudged`
    is the first of its fields that preemption can't judge.
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
    volumes: tuple[UsedVolume, ...]
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

    @property
    def may_be_reserved_for(self) -> bool:
        """Tell whether a pod without a node tolerates our taint, as the webhook lets pods of tiers that evict."""
        borne = listed(self.spec.tolerations) if self.spec else ()
        return any(mapped(each).get("key") == RESERVED for each in borne)


def pod_state(found: SchedulablePod, policy: TierPolicy) -> PodState:
    """Return a pod's state. Raises Refused for an amount that is no quantity."""
    metadata, spec, status = found.metadata, found.spec, found.status
    made = {each.name: each.resource_claim_name for each in status.resource_claim_statuses}
    # A claim that the controller found to be not needed has a status without a name.
    names = [
        each.resource_claim_name or made.get(each.name, "")
        for each in spec.resource_claims
        if each.resource_claim_name or each.name not in made or made[each.name]
    ]
    group = f"{metadata.namespace}/{spec.scheduling_group.pod_group_name}" if spec.scheduling_group else ""
    gang = gang_beyond(metadata) or (metadata.controller_uid if policy.kinds.is_gang(metadata.controller) else "")
    unscheduled = next((each for each in status.conditions if each.type == "PodScheduled"), StatusCondition())
    waits = not spec.node_name and (unscheduled.status, unscheduled.reason) == ("False", "Unschedulable")
    ports = (
        (port.host_ip or "0.0.0.0", port.protocol, port.host_port)
        for container in (*spec.containers, *spec.init_containers)
        for port in container.ports
        if port.host_port
    )
    return PodState(
        uid=metadata.uid,
        version=metadata.resource_version,
        namespace=metadata.namespace,
        name=metadata.name,
        node=spec.node_name,
        priority=spec.priority or 0,
        class_name=spec.priority_class_name,
        gang=group or (f"{metadata.namespace}/{gang}" if gang else metadata.uid),
        pod_group=group,
        labels=metadata.labels,
        requests=_requests(spec, status),
        claims=tuple(f"{metadata.namespace}/{name}" if name else "" for name in names),
        volumes=tuple(used_volumes(metadata, spec.volumes)),
        ports=frozenset(ports),
        grace=grace_of(found),
        started_at=unix_seconds(status.start_time) or 0.0,
        ends_at=unix_seconds(metadata.deletion_timestamp),
        is_static=MIRROR in metadata.annotations,
        repels=view({"terms": _required(spec.affinity.pod_anti_affinity)}, _Repelled).terms,
        waits_since=unix_seconds(unscheduled.last_transition_time) or 0.0 if waits else None,
        nominated=status.nominated_node_name,
        spec=None if spec.node_name else spec,
        unjudged=_unjudged(spec, policy),
    )


def _requests(spec: _Spec, status: _Status) -> dict[str, Decimal]:
    """Return what a pod takes of each resource. Raises Refused for an amount that is no quantity."""
    # 1. What each container asks for, what it was allocated, and what is in effect. A resize that the node can never
    #    grant does not count.
    infeasible = any((each.type, each.reason) == ("PodResizePending", "Infeasible") for each in status.conditions)
    statuses = {each.name: each for each in (*status.container_statuses, *status.init_container_statuses)}
    asked, allocated, effective = dict[str, _Quantities](), dict[str, _Quantities](), dict[str, _Quantities]()
    for path, container in spec.every_container():
        found = statuses.get(container.name, _ContainerStatus())
        asked[path] = {} if infeasible else container.resources.asked
        allocated[path] = asked[path] if found.allocated_resources is None else found.allocated_resources
        effective[path] = allocated[path] if found.resources.requests is None else found.resources.requests

    # 2. The containers, or what the kubelet says of all of them together.
    level = status.resources.requests if status.resources else None
    totals = [_peaks(spec, asked)]
    if status.allocated_resources is not None and level is not None:
        totals += [_read(status.allocated_resources), _read(level)]
    elif statuses:
        totals += [_peaks(spec, allocated), _peaks(spec, effective)]

    # 3. The pod as a whole.
    whole = [_read(spec.resources.asked)]
    if whole[0] and status.resources:
        whole = [*(() if infeasible else whole), _read(level or {}), _read(status.allocated_resources or {})]
    most = _largest(totals) | _largest(whole)
    overhead = _read(spec.overhead)
    return {name: most.get(name, NOTHING) + overhead.get(name, NOTHING) for name in most.keys() | overhead.keys()}


_Quantities = Mapping[str, Quantity]


def _peaks(spec: PodSpec, quantities: Mapping[str, _Quantities]) -> dict[str, Decimal]:
    """Return the most that a pod takes at a time, while it starts or while it runs, by what each container takes."""
    amounts = {path: _read(each) for path, each in quantities.items()}

    def peak(name: str) -> Decimal:
        return peak_request(Pod(spec=spec), lambda _, path: amounts[path].get(name, NOTHING))

    return {name: peak(name) for name in {name for each in amounts.values() for name in each}}


def _read(quantities: _Quantities) -> dict[str, Decimal]:
    return {name: quantity(value, name) for name, value in quantities.items()}


def _largest(found: list[dict[str, Decimal]]) -> dict[str, Decimal]:
    names = {name for each in found for name in each}
    return {name: max(each[name] for each in found if name in each) for name in names}


def _required(affinity: object) -> list[Any]:
    return listed(mapped(affinity).get("requiredDuringSchedulingIgnoredDuringExecution"))


def _unjudged(spec: _Spec, policy: TierPolicy) -> Phrase | None:
    """Return the words for the first field that keeps us from judging which nodes a pod fits; None without one."""
    if _required(spec.affinity.pod_affinity) or _required(spec.affinity.pod_anti_affinity):
        return Phrase("unjudged-affinity")
    spread = listed(spec.topology_spread_constraints)
    if any(mapped(each).get("whenUnsatisfiable", "DoNotSchedule") == "DoNotSchedule" for each in spread):
        return Phrase("unjudged-spread")
    if not SINGLE_USE.isdisjoint(field for each in spec.volumes for field in each):
        return Phrase("unjudged-inline-volume")
    starting = (each for each in spec.init_containers if not each.is_sidecar)
    if any(policy.weights.has_class(name) for each in starting for name in each.resources.asked):
        return Phrase("unjudged-init-devices")
    return None
