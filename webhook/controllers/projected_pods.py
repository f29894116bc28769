"""What is kept of a pod that exists: what it holds, and how it waits."""

import re
from decimal import Decimal
from functools import lru_cache
from sys import intern

import msgspec

from webhook.cluster.live import LiveCluster
from webhook.cluster.pod_informer import LONGEST_MESSAGE, SeenPod
from webhook.cluster.work_of_pod import has_work_to_lose
from webhook.config.in_force import PolicyInForce
from webhook.controllers.claimed_devices import NO_CLAIMS, Claimant, Claimed, ClaimedDevices
from webhook.controllers.pods_on_nodes import Placed
from webhook.ledger.protocol import Gated, Holding
from webhook.objects.pods import LONGEST_UID, OwnerReference
from webhook.objects.refusal import Unreadable
from webhook.policy.assignment.request import gang_beyond
from webhook.policy.quota.charges import Charge, charge_of, tier_counted
from webhook.policy.quota.demand import NOTHING
from webhook.policy.quota.held import TOLD
from webhook.policy.values.tier_policy import TierPolicy
from webhook.report.gpus_now import WaitingPod
from webhook.report.waiting import gates_said


class Observed(msgspec.Struct, frozen=True):
    """A pod that exists: what it holds, None for nothing that counts, and its claims if it has any."""

    placed: Placed | None
    claimant: Claimant | None

    @property
    def claimed(self) -> Claimed:
        """What its claims ask for."""
        return self.claimant.claimed if self.claimant else NO_CLAIMS


class PodProjection:
    """By the policy in force, and by what is known of the cluster."""

    def __init__(self, cluster: LiveCluster, in_force: PolicyInForce) -> None:
        self._cluster = cluster
        self._in_force = in_force

    async def of(self, seen: SeenPod, devices: ClaimedDevices) -> Observed | None:
        """None for a pod that counts for nothing."""
        policy, metadata = self._in_force.current(), seen.pod.metadata
        claimed, claimant = NO_CLAIMS, None
        if seen.pod.spec.resource_claims:
            claimed = await devices.of(seen)
            claimant = Claimant(metadata.uid, metadata.namespace, metadata.name, claimed)
        charge = (
            None if claimed.unread else charge_of(seen.pod, claimed.devices, policy) or _waits_with_gang(seen, policy)
        )
        if charge is None:
            return Observed(None, claimant) if claimant else None
        workload, may_be_gang = await self._makers_of(seen, policy)
        holding = Holding(
            intern(metadata.namespace),
            charge if charge.shared else _alike(charge.gpus, charge.tier, charge.flavor),
            seen.ends_in,
            intern(_short(metadata.controller_uid)),
            seen.preempted and seen.ends_within(policy.checkpoint.max_grace_period),
            metadata.name,
            intern(_short(gang_beyond(metadata))),
            _gated(seen, awaits_controller=may_be_gang),
            workload,
        )
        work_since = seen.began if seen.began is not None and has_work_to_lose(seen.pod, policy) else None
        node, waits = intern(seen.pod.spec.node_name), _waits(seen, charge)
        return Observed(Placed(holding, node, waits, work_since, seen.bound), claimant)

    async def _makers_of(self, seen: SeenPod, policy: TierPolicy) -> tuple[str, bool]:
        """The uid of the outermost workload that makes a pod, and whether its controller may be a gang.

        Nobody asks for either in a tenant that holds nothing: "". A controller of a gang's kind may be a gang, also one
        that can't be read now, unless the API server does not serve that kind.
        """
        metadata = seen.pod.metadata
        owner, home = metadata.controller, self._cluster.known.seen_namespace(metadata.namespace)
        tenant = self._cluster.known.tenant(home) if home else None
        if owner is None or not (seen.pod.waits_for_quota or (tenant is not None and tenant.holds)):
            return "", False
        may_be_gang = policy.kinds.is_gang(owner)
        try:
            found = await self._cluster.lookups.owners.outermost(metadata.namespace, owner, policy.kinds)
        except Unreadable:
            return "", may_be_gang
        return (intern(_short(found.uid)), may_be_gang) if found else ("", False)


def _waits(seen: SeenPod, charge: Charge) -> WaitingPod | None:
    """How the pod waits for a node; None where it has one, or is being deleted."""
    metadata, spec = seen.pod.metadata, seen.pod.spec
    if spec.node_name or metadata.deletion_timestamp or not charge.gpus:
        return None
    owner = metadata.controller
    workload = f"{owner.kind}/{owner.name}" if owner and _is_readable(owner) else ""
    gates = [str(each["name"]) for each in spec.scheduling_gates if isinstance(each, dict) and "name" in each]
    why = gates_said(gates) if gates else seen.unscheduled or "the scheduler has not looked at it yet"
    return WaitingPod(
        intern(metadata.namespace),
        intern(workload or f"Pod/{metadata.name}"),
        charge.tier or "",
        charge.gpus,
        metadata.creation_timestamp or "",
        intern(why[:LONGEST_MESSAGE]),
        metadata.name,
        bool(gates),
    )


def _is_readable(owner: OwnerReference) -> bool:
    """Whether it can be the name of anything: people read it, and any text may be written there."""
    return len(owner.kind + owner.name) <= LONGEST_UID and bool(_NAME.fullmatch(owner.kind + owner.name))


_NAME = re.compile(r"[A-Za-z0-9.:_-]+")


def _waits_with_gang(seen: SeenPod, policy: TierPolicy) -> Charge | None:
    """The charge of a pod without GPUs that waits behind our gate: nothing."""
    spec = seen.pod.spec
    if not seen.pod.waits_for_quota or seen.pod.metadata.deletion_timestamp:
        return None
    return _alike(NOTHING, tier_counted(spec.priority_class_name, spec.priority, policy.tiers), None)


def _gated(seen: SeenPod, *, awaits_controller: bool) -> Gated | None:
    """How it waits behind our gate, if it does."""
    if not seen.pod.waits_for_quota:
        return None
    since, told = seen.pod.metadata.creation_timestamp or "", seen.unscheduled.startswith(TOLD)
    return Gated(seen.pod.spec.priority or 0, since, seen.version, told, awaits_controller)


def _short(uid: str) -> str:
    """What a pod says that made it, or that it draws on; "" where it is too long to be any."""
    return uid if len(uid) <= LONGEST_UID else ""


@lru_cache(maxsize=1024)
def _alike(gpus: Decimal, tier: str | None, flavor: str | None) -> Charge:
    """One object for all pods with that charge: of tens of thousands that are kept most have the same."""
    return Charge(gpus, tier, flavor)
