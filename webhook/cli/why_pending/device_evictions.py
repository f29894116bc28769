"""Tells which pods are evicted for a pod that waits for devices of DRA, or why nobody is, as the leader decides it."""

from collections.abc import Iterable
from datetime import UTC, datetime

import msgspec

from webhook.cli.cluster.one_object import AskedCluster
from webhook.cluster.scheduling_view import listed_state
from webhook.cluster.webhook_configurations import exempt_namespaces, webhook_configurations
from webhook.kube.client import RFC_3339
from webhook.objects.refusal import Phrase
from webhook.objects.view import Tree, view
from webhook.policy.preemption.cluster_state import ClusterState, Rules
from webhook.policy.preemption.decide_preemption import decide_preemption
from webhook.policy.preemption.failures import MOST_FAILURES, NO_FAILURES, failures, next_try, paused_until
from webhook.policy.preemption.pod_state import PodState, SchedulablePod, pod_state
from webhook.policy.preemption.preemptor import EvictionPlan
from webhook.policy.preemption.reservation import Reservation, reservations
from webhook.report.device_room import EVICTS_NOBODY
from webhook.report.posture import NodeReservation, reservations_shown
from webhook.sentences.sentence import sentence


class DeviceEvictions(msgspec.Struct, frozen=True):
    """The sentences on who is evicted for a pod and which nodes are reserved, and the namespaces that are exempt."""

    sentences: tuple[str, ...] = ()
    exempt: frozenset[str] = frozenset()


async def device_evictions(asked: AskedCluster, tree: Tree, now: datetime) -> DeviceEvictions:
    policy, reader = asked.policy, asked.reader
    if policy.device_preemption != "On":
        return DeviceEvictions((EVICTS_NOBODY,))
    reading = listed_state(reader.client, policy, now.timestamp())
    state = await reader.part("evictions", reading, None, "who may be evicted for it")
    if state is None:
        return DeviceEvictions()
    lost = "which namespaces are exempt from eviction"
    exempt = exempt_namespaces(await reader.part("configurations", webhook_configurations(reader.client), (), lost))
    pod, there = pod_state(view(tree, SchedulablePod), policy), reservations(state)
    known = asked.cluster.known
    tenant = known.tenant(await known.namespace(pod.namespace))
    elsewhere = frozenset({pod.namespace} if tenant is not None and tenant.charged_elsewhere else ())
    own = _own(pod, state, Rules(policy, exempt, elsewhere), there)
    others = reservations_shown(each for each in there if pod.uid not in each.pods)
    return DeviceEvictions((own, *(f"{_capital(each.said)}." for each in others)), exempt)


def _own(pod: PodState, state: ClusterState, rules: Rules, there: Iterable[Reservation]) -> str:
    if (own := next((each for each in there if pod.uid in each.pods), None)) is not None:
        return f"{_capital(NodeReservation.of(own, pod.shown).said_to_its_pod)}."
    known = failures(state)
    if state.now < (again := max(next_try(pod.gang, known), paused_until(pod.namespace, known))):
        if (times := known.get(pod.gang, NO_FAILURES).count) >= MOST_FAILURES:
            why = Phrase("preemption-failed-before", times=times)
        else:
            why = Phrase("preemption-paused", until=datetime.fromtimestamp(again, UTC).strftime(RFC_3339))
        return f"{_capital(sentence(why))}."
    answer = decide_preemption(pod.gang, state, rules)
    if isinstance(answer, EvictionPlan) and answer.victims:
        victims = tuple(each.shown for each in answer.victims)
        answer = Phrase("nodes-to-reserve", nodes=answer.nodes, pods=victims)
    elif isinstance(answer, EvictionPlan):
        answer = Phrase("preemption-holders-ending", node=answer.nodes[0], pod=pod.shown)
    return f"gpu-tiers: {sentence(answer)}."


def _capital(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}"
