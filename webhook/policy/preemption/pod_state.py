"""A pod as preemption knows it: what it needs, what it uses on its node, and what forbids to judge it.

Source: KEP-5004 (extended resources by DRA).
"""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
from msgspec import field

from webhook.objects.pods import Container, Metadata, Pod, PodSpec
from webhook.objects.refusal import Phrase
from webhook.objects.storage import SINGLE_USE, UsedVolume, used_volumes
from webhook.objects.times import unix_seconds
from webhook.objects.view import View, listed, mapped, view
from webhook.policy.assignment.request import gang_beyond
from webhook.policy.preemption.node_state import RESERVED
from webhook.policy.preemption.pod_requests import Amounts, PodCondition, SizedSpec, SizedStatus, pod_requests
from webhook.policy.quota.tenant_quotas import LabelSelector, requirements_of
from webhook.policy.values.tier_policy import TierPolicy

MIRROR = "kubernetes.io/config.mirror"
DEFAULT_GRACE = 30
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


class _Spec(SizedSpec, frozen=True):
    containers: tuple[_Container, ...] = ()
    init_containers: tuple[_Container, ...] = ()
    volumes: tuple[dict[str, Any], ...] = ()  # type: ignore[assignment]


class _Metadata(Metadata, frozen=True):
    resource_version: str = ""


class _Condition(PodCondition, frozen=True):
    status: str = ""
    last_transition_time: str | None = None


class _MadeClaim(View, frozen=True):
    name: str = ""
    resource_claim_name: str | None = None


class _Status(SizedStatus, frozen=True):
    conditions: tuple[_Condition, ...] = ()
    nominated_node_name: str = ""
    resource_claim_statuses: tuple[_MadeClaim, ...] = ()
    start_time: str | None = None


class Repelled(View, frozen=True):
    """The pods that a term of anti-affinity keeps off nodes with the same label, of its namespaces or the pod's own."""

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

    `gang` is what it is of use only together with: a PodGroup or a workload of its namespace, or the pod itself.
    `claims` are its ResourceClaims as namespace/name, "" for one that is not made yet. `volumes` are its
    PersistentVolumeClaims.
    `ends_at` is when its grace period is over, in seconds since 1970; None while nobody deletes it. `waits_since` is
    when the scheduler first found no node for it, None where it has a node or nobody has looked. `spec` is kept of a
    pod without a node. `repels` is its required anti-affinity. `unjudged` is the first of its fields that forbids to
    judge it.
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
        """Tell of a pod without a node whether it tolerates our taint: the webhook gives that to tiers that evict."""
        borne = listed(self.spec.tolerations) if self.spec else ()
        return any(mapped(each).get("key") == RESERVED for each in borne)


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
    gang = gang_beyond(metadata) or made_by_gang
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
        gang=group or (f"{metadata.namespace}/{gang}" if gang else metadata.uid),
        pod_group=group,
        labels=metadata.labels,
        requests=pod_requests(spec, status),
        claims=tuple(f"{metadata.namespace}/{name}" if name else "" for name in names),
        volumes=tuple(used_volumes(metadata, spec.volumes)),
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
    if not SINGLE_USE.isdisjoint(field for each in spec.volumes for field in each):
        return Phrase("unjudged-inline-volume")
    starting = (each for each in spec.init_containers if not each.is_sidecar)
    if any(policy.weights.has_class(name) for each in starting for name in each.resources.asked):
        return Phrase("unjudged-init-devices")
    return None
