"""Keeps what was decided of pods a moment ago: a pod like one of them gets that decision, without the steps to it.

decide_pod is pure: from equal values it makes an equal decision. So all of them are compared, the policy, the facts and
the pod, but for what tells a pod from its siblings and no decision reads. Nothing here grows old: where a fact has
changed, nothing is equal.
"""

import re
from collections.abc import Mapping

import msgspec
from msgspec import structs

from webhook.objects.pods import Pod
from webhook.policy.checkpoint.listen import INDEX
from webhook.policy.decide import Decision, decide_pod
from webhook.policy.values.facts import Facts
from webhook.policy.values.tier_policy import TierPolicy

KEPT_BYTES = 16_384
"""Of an object at most whose decision is kept. Pods have 2 to 10 KB; larger ones would hold memory for nothing."""
MOST_MAKERS, MOST_OF_ONE = 64, 4
"""Workloads whose pods come together, and decisions of each: as it was sent and as it was patched, of two templates."""

OF_ONE_POD = frozenset({INDEX, "apps.kubernetes.io/pod-index", "statefulset.kubernetes.io/pod-name"})
"""Labels and annotations by which the controllers of Jobs and StatefulSets number their pods."""
_NUMBER = re.compile(r"-\d+(?=-?$)")
"""At the end of a name: an Indexed Job generates NAME-INDEX-, a StatefulSet writes NAME-INDEX."""


class _Kept(msgspec.Struct, frozen=True):
    pod: Pod
    facts: Facts
    decision: Decision


class RecentDecisions:
    """The decisions on the pods that came last, of a few workloads, under one policy."""

    def __init__(self) -> None:
        self._policy: TierPolicy | None = None
        self._unread = OF_ONE_POD
        """Of those keys the ones that no rule of the policy asks for."""
        self._by_maker: dict[tuple[str, str], tuple[_Kept, ...]] = {}

    def get(self, pod: Pod, facts: Facts, policy: TierPolicy) -> Decision | None:
        """The decision on a pod like this one, else one that is made now. Raises Refused."""
        if policy is not self._policy:
            self._policy, self._by_maker = policy, {}
            self._unread = OF_ONE_POD.difference(*(rule.match.labels for rule in policy.rules))
        maker, alike = (facts.namespace.name, pod.metadata.controller_uid), _without_number(pod, facts, self._unread)
        kept = self._by_maker.get(maker, ())
        for each in kept:
            # Nothing is decided by `holders`: it is what a decision has counted already.
            same_facts = structs.replace(facts, holders=each.facts.holders) == each.facts
            if each.pod == alike and same_facts:
                asked = structs.replace(each.decision.tier_request, pod=pod, facts=facts)
                return structs.replace(each.decision, tier_request=asked)
        decision = decide_pod(pod, facts, policy)
        if decision is not None:
            self._keep(maker, (_Kept(alike, facts, decision), *kept[: MOST_OF_ONE - 1]))
        return decision

    def _keep(self, maker: tuple[str, str], kept: tuple[_Kept, ...]) -> None:
        self._by_maker.pop(maker, None)
        if len(self._by_maker) >= MOST_MAKERS:
            del self._by_maker[next(iter(self._by_maker))]
        self._by_maker[maker] = kept


def _without_number(pod: Pod, facts: Facts, unread: frozenset[str]) -> Pod:
    """The pod without what tells it from its siblings, unless a rule asks for it, or each shard is a run of its own."""
    metadata = pod.metadata
    number = unread - {INDEX} if any(owner.shards for owner in facts.owners) else unread
    generated = metadata.generate_name
    alike = structs.replace(
        metadata,
        uid="",
        name="" if generated else _NUMBER.sub("", metadata.name),
        generate_name=_NUMBER.sub("", generated),
        labels=_without(number, metadata.labels),
        annotations=_without(number, metadata.annotations),
    )
    return structs.replace(pod, metadata=alike)


def _without(keys: frozenset[str], written: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in written.items() if key not in keys}
