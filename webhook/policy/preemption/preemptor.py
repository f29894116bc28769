"""Reads the preemptor: a pod or a gang that waits for devices of DRA, and what it needs.

The volumes of a pod can be used on some nodes only, as kube-scheduler judges it:

1. A claim that is bound: where its PersistentVolume's affinity and its labels of zone and region allow.
2. A claim whose volume is made where its first pod starts (WaitForFirstConsumer): where the `allowedTopologies` of its
   StorageClass allow, or only on the node that the scheduler has selected. A free PersistentVolume that would do as
   well is not looked for.
3. A node attaches no more volumes of a CSI driver than it can.

If more than that decides, it is not judged. Sources: the plugins VolumeBinding, VolumeZone, VolumeRestrictions and
NodeVolumeLimits of kube-scheduler 1.37.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from decimal import Decimal
from itertools import product
from math import prod

import msgspec

from webhook.objects.node_fit import Taint, first_toleration
from webhook.objects.pods import NodeRequirement, NodeSelectorTerm, PodSpec
from webhook.objects.refusal import Phrase
from webhook.objects.storage import Terms, UsedVolume, VolumeClaim
from webhook.objects.view import at
from webhook.policy.devices import WantedDevices
from webhook.policy.placement import UNNAMED
from webhook.policy.preemption.cluster_state import ClusterState, Rules, StorageState, amount_of
from webhook.policy.preemption.node_state import RESERVED, Amounts
from webhook.policy.preemption.pod_state import PodState
from webhook.policy.values.tiers import Tier

SETTLED = 5.0
"""Seconds for which a pod waits before anybody is evicted for it: the scheduler may place it, or evict by itself."""
MOST_ALTERNATIVES = 16
MOST_REQUESTS = 6
"""Different requests for devices that are judged for a gang. Each doubles the work."""

IN_TREE = "kubernetes.io/"
"""The prefix of the provisioners before CSI drivers, and of no-provisioner, whose volumes are made by hand."""

Choice = tuple[WantedDevices, ...]
"""One alternative for each request of a pod."""


class NobodyEvicted(Exception):  # noqa: N818 - an answer, not a malfunction
    """Nobody is evicted for a preemptor, and why."""

    def __init__(self, phrase: str, /, **fields: object) -> None:
        self.why = Phrase(phrase, **fields)
        super().__init__(self.why)


def not_judged(pod: PodState, what: Phrase) -> NobodyEvicted:
    return NobodyEvicted("preemption-not-judged", pod=pod.shown, what=what)


class Need(msgspec.Struct, frozen=True):
    """The needs of a pod without a node. Its `choices` of devices are in the order of its preference.

    `amounts` are the resources that the node itself has, volumes among them. `by_class` are those that DRA gives,
    unless a device plugin of the node has them. `drivers` are the CSI drivers of its volumes, and a node must match one
    term of each of `terms` to reach them. `repelled_from` are labels of nodes on which it is not allowed because
    of other pods.
    """

    pod: PodState
    spec: PodSpec
    choices: tuple[Choice, ...]
    amounts: Amounts
    by_class: Amounts
    drivers: frozenset[str]
    terms: tuple[Terms, ...]
    repelled_from: Mapping[str, Collection[str]]


class Preemptor(msgspec.Struct, frozen=True):
    """A pod or a gang that waits, with the tier and the priority of the lowest of its pods."""

    gang: str
    needs: tuple[Need, ...]
    tier: Tier
    priority: int

    @property
    def shown(self) -> str:
        """The pod with the most devices, as namespace/name."""
        return self.needs[0].pod.shown


class EvictionPlan(msgspec.Struct, frozen=True):
    """The nodes to reserve for a preemptor, and the pods to evict there, those with the longest grace period first.

    There are no victims if the preemptor shares a reserved node on which pods end already.
    """

    preemptor: Preemptor
    nodes: tuple[str, ...]
    victims: tuple[PodState, ...]


def preemptor_of(gang: str, state: ClusterState, rules: Rules) -> Preemptor:
    """Return the waiting pods of a gang as a preemptor.

    Raises NobodyEvicted if nobody may be evicted for one of the pods, if their PodGroup is incomplete, or if their
    needs are not judged.
    """
    # 1. All of them wait only for the scheduler.
    everyone = state.gangs.get(gang, [])
    waiting = sorted((each for each in everyone if not each.node and each.ends_at is None), key=lambda pod: pod.shown)
    if not waiting:
        raise NobodyEvicted("preemptor-gone")
    tiers = [_require_waiting(pod, state, rules) for pod in waiting]
    group = state.groups.get(waiting[0].pod_group)
    if group is not None:
        least, there = at(group.spec.scheduling_policy.gang, "minCount"), sum(each.ends_at is None for each in everyone)
        if isinstance(least, int) and there < least:
            raise NobodyEvicted("preemptor-incomplete", group=group.metadata.name, there=there, least=least)
        if group.spec.scheduling_constraints:
            raise not_judged(waiting[0], Phrase("unjudged-topology"))

    # 2. What they need is known.
    needs = [_need(pod, state, rules) for pod in waiting]
    shared = [name for name, count in Counter(name for each in needs for name in each.pod.claims).items() if count > 1]
    if shared:
        raise NobodyEvicted("preemptor-shares-claim", claim=shared[0])
    kinds = {(wanted.device_class, wanted.selectors) for each in needs for choice in each.choices for wanted in choice}
    if len(kinds) > MOST_REQUESTS:
        raise not_judged(waiting[0], Phrase("unjudged-requests", most=MOST_REQUESTS))
    if not any(rules.policy.weights.of_devices(name) > 0 for name, _ in kinds):
        raise NobodyEvicted("preemptor-without-devices", pod=waiting[0].shown)
    needs.sort(key=lambda need: -sum(wanted.count for wanted in need.choices[0]))
    lowest = min(tiers, key=lambda tier: tier.value)
    return Preemptor(gang, tuple(needs), lowest, min(pod.priority for pod in waiting))


def _require_waiting(pod: PodState, state: ClusterState, rules: Rules) -> Tier:
    tier, spec = rules.policy.tiers.of_class(pod.class_name), pod.spec
    if tier is None:
        raise NobodyEvicted("preemptor-without-tier", pod=pod.shown)
    if spec is None or spec.preemption_policy == "Never":
        raise NobodyEvicted("preemptor-never", pod=pod.shown, tier=tier.name)
    if spec.scheduler_name not in UNNAMED:
        raise NobodyEvicted("preemptor-of-other-scheduler", pod=pod.shown, scheduler=spec.scheduler_name)
    if pod.namespace in rules.exempt:
        raise NobodyEvicted("preemptor-exempt", pod=pod.shown)
    if pod.namespace in rules.queued_elsewhere:
        raise NobodyEvicted("preemptor-queued-elsewhere", pod=pod.shown)
    if pod.waits_since is None or state.now - pod.waits_since < SETTLED:
        raise NobodyEvicted("preemptor-not-settled", pod=pod.shown)
    if pod.nominated:
        raise NobodyEvicted("preemptor-nominated", pod=pod.shown, node=pod.nominated)
    if first_toleration(spec, Taint(key=RESERVED, value=tier.name, effect="NoSchedule")) is None:
        raise NobodyEvicted("preemptor-too-old", pod=pod.shown)
    if pod.unjudged:
        raise not_judged(pod, pod.unjudged)
    return tier


def _need(pod: PodState, state: ClusterState, rules: Rules) -> Need:
    weights, classes = rules.policy.weights, rules.policy.classes
    # 1. The resources that a DeviceClass serves.
    by_class = {name: amount for name, amount in pod.requests.items() if weights.has_class(name) and amount}
    requests: list[Sequence[WantedDevices]] = [
        [WantedDevices(weights.class_of(name), int(amount))] for name, amount in by_class.items()
    ]

    # 2. The requests of its claims, which anybody may delete, or create again by hand.
    named = {each.resource_claim_name for each in (pod.spec.resource_claims if pod.spec else ())}
    for name in pod.claims:
        claim = state.claims.get(name)
        is_own = claim is not None and (claim.metadata.name in named or claim.metadata.controller_uid == pod.uid)
        if claim is None or not is_own or claim.metadata.deletion_timestamp is not None:
            raise NobodyEvicted("preemptor-claim-missing", pod=pod.shown)
        if claim.is_allocated:
            raise NobodyEvicted("preemptor-claim-allocated", pod=pod.shown, claim=name)
        requests += [[wanted for _, wanted in request] for request in claim.requests()]
    for wanted in (each for request in requests for each in request):
        if wanted.device_class not in classes:
            raise NobodyEvicted("preemptor-class-missing", pod=pod.shown, device_class=wanted.device_class)
        if not wanted.plain:
            raise not_judged(pod, Phrase("unjudged-request", device_class=wanted.device_class))
    amounts = {name: amount for name, amount in pod.requests.items() if name not in by_class}
    choices = tuple(product(*requests)) if prod(map(len, requests)) <= MOST_ALTERNATIVES else ()
    if not choices or pod.spec is None:
        raise not_judged(pod, Phrase("unjudged-alternatives", most=MOST_ALTERNATIVES))
    attached, terms = _volumes(pod, state)
    amounts |= {amount_of(driver): Decimal(count) for driver, count in attached.items()}

    # 3. The labels of nodes on which the required anti-affinity of other pods does not allow it. The labels of
    #    namespaces are not looked at. A pod that is evicted may be among those others.
    repelled_from = defaultdict[str, set[str]](set)
    for other in state.repelling:
        for term in other.repels:
            where = state.nodes[other.node].labels.get(term.topology_key)
            is_for_it = term.namespace_selector is not None or pod.namespace in (term.namespaces or (other.namespace,))
            if is_for_it and where is not None and term.selects(pod.labels):
                repelled_from[term.topology_key].add(where)
    return Need(pod, pod.spec, choices, amounts, by_class, frozenset(attached), terms, repelled_from)


def _volumes(pod: PodState, state: ClusterState) -> tuple[Counter[str], tuple[Terms, ...]]:
    """Return the number of a pod's volumes by CSI driver, and its `Need.terms`. Raises NobodyEvicted."""
    storage, reached_by, attached = state.storage, list[Terms](), set[tuple[str, str]]()
    for used in dict.fromkeys(pod.volumes):
        # 1. A claim for which the scheduler finds no node, whatever is evicted, or which is not judged.
        claim = storage.claims.get(used.key)
        fault = "volume-claim-missing" if claim is None else _fault(claim, used, pod, storage)
        if claim is None or fault:
            raise NobodyEvicted("preemptor-volume", pod=pod.shown, claim=used.key, problem=Phrase(fault))
        if problem := _unjudged(claim, pod, state):
            raise not_judged(pod, Phrase("unjudged-volume", claim=used.key, problem=problem))

        # 2. The nodes from which its volume can be reached.
        if claim.is_bound:
            reached_by += storage.volumes[claim.spec.volume_name].selectors
        else:
            if terms := storage.classes[claim.spec.storage_class_name].terms:
                reached_by.append(terms)
            if claim.selected_node:
                name = NodeRequirement(key="metadata.name", operator="In", values=(claim.selected_node,))
                reached_by.append((NodeSelectorTerm(match_fields=(name,)),))
        if (attachment := storage.attachment(used.key)) is not None:
            attached.add(attachment)
    return Counter(driver for driver, _ in attached), tuple(reached_by)


def _fault(claim: VolumeClaim, used: UsedVolume, pod: PodState, storage: StorageState) -> str:
    if claim.metadata.deletion_timestamp is not None:
        return "volume-claim-deleted"
    if used.is_own and claim.metadata.controller_uid != pod.uid:
        return "volume-claim-of-another"
    if claim.is_bound:
        is_lost = claim.status.phase == "Lost" or claim.spec.volume_name not in storage.volumes
        return "volume-lost" if is_lost else ""
    found = storage.classes.get(claim.spec.storage_class_name)
    is_made = found is not None and found.waits and not claim.spec.volume_name
    return "" if is_made else "volume-claim-unbound"


def _unjudged(claim: VolumeClaim, pod: PodState, state: ClusterState) -> Phrase | None:
    """Return why it can't be judged which nodes can use a claim; None if it can."""
    users = (each for each in state.volume_users[claim.key] if each.node or each.gang == pod.gang)
    other = next((each for each in users if each is not pod), None)
    if other is not None and "ReadWriteOncePod" in claim.spec.access_modes:
        return Phrase("volume-of-one-pod", other=other.shown)
    if claim.is_bound:
        return Phrase("volume-in-tree") if state.storage.volumes[claim.spec.volume_name].is_in_tree else None
    if other is not None:
        return Phrase("volume-not-made", other=other.shown)
    made_by = state.storage.classes[claim.spec.storage_class_name].provisioner
    if made_by.startswith(IN_TREE) or claim.spec.selector:
        return Phrase("volume-to-be-found")
    driver = state.storage.drivers.get(made_by)
    if driver is not None and driver.says("storageCapacity"):
        return Phrase("volume-capacity", driver=made_by)
    return None
