"""Tells which pods are evicted for a pod that waits for devices of DRA, or why nobody is, as the leader decides it."""

from datetime import UTC, datetime

from webhook.cli.cluster.one_object import AskedCluster
from webhook.cluster.scheduling_view import listed_state
from webhook.kube.client import RFC_3339
from webhook.objects.refusal import Phrase
from webhook.objects.view import Tree, view
from webhook.policy.preemption.cluster_state import ClusterState, Rules
from webhook.policy.preemption.decide_preemption import decide_preemption
from webhook.policy.preemption.pod_state import SchedulablePod, pod_state
from webhook.policy.preemption.preemptor import EvictionPlan
from webhook.policy.preemption.reservation import Failures, Reservation, failures, reservations
from webhook.report.pending import EVICTS_NOBODY
from webhook.sentences.sentence import sentence


async def device_evictions(asked: AskedCluster, tree: Tree, now: datetime) -> tuple[str, ...]:
    """Say what is done for a pod, and which nodes are reserved for other pods."""
    policy, reader = asked.policy, asked.reader
    if policy.device_preemption != "On":
        return (EVICTS_NOBODY,)
    reading = listed_state(reader.client, policy, now.timestamp())
    state = await reader.part("budgets", reading, None, "who may be evicted for it")
    if state is None:
        return ()
    pod, there = pod_state(view(tree, SchedulablePod), policy), reservations(state)
    known = asked.cluster.known
    tenant = known.tenant(await known.namespace(pod.namespace))
    elsewhere = frozenset({pod.namespace} if tenant is not None and tenant.charged_elsewhere else ())
    own = _own(pod.gang, state, Rules(policy, queued_elsewhere=elsewhere), there)
    others = (each for gang, each in there.items() if gang != pod.gang)
    return (own, *(_reserved("nodes-reserved-for-others", each) for each in others))


def _own(gang: str, state: ClusterState, rules: Rules, there: dict[str, Reservation]) -> str:
    if (own := there.get(gang)) is not None:
        return _reserved("nodes-reserved-for-it", own)
    failed = failures(state).get(gang, Failures(0, 0.0))
    if not failed.allows(state.now):
        return f"{sentence(Phrase('preemption-failed-before', times=failed.count))}."
    answer = decide_preemption(gang, state, rules)
    if isinstance(answer, EvictionPlan):
        victims = tuple(each.shown for each in answer.victims)
        answer = Phrase("nodes-to-reserve", nodes=answer.nodes, pods=victims)
    return f"gpu-tiers: {sentence(answer)}."


def _reserved(phrase: str, reservation: Reservation) -> str:
    until = datetime.fromtimestamp(reservation.until, UTC).strftime(RFC_3339)
    text = sentence(Phrase(phrase, nodes=reservation.nodes, pod=reservation.name, tier=reservation.tier, until=until))
    return f"gpu-tiers: {text}."
