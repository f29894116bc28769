"""Says in a namespace's events what its labels of gpu-tiers say wrongly: whoever set them may have read no warning."""

from collections.abc import Callable, Mapping

from webhook.cluster.watched import Watched
from webhook.controllers.backstop_writer import Rounds
from webhook.controllers.event_writer import EventWriter, Regarding
from webhook.policy.namespace_labels import namespace_warnings
from webhook.policy.values.tier_policy import TierPolicy
from webhook.sentences.sentence import sentence

INTERVAL = 5.0
"""Seconds between two rounds at least."""
RECHECK = 60.0
"""Seconds after which a round comes unasked: this replica may lead now."""
REASON = "NamespaceLabel"


class NamespaceEvents(Rounds):
    """Tells of each mistake once. `leading`: whether this replica is the one that tells."""

    def __init__(
        self,
        cluster: Watched,
        policy: Callable[[], TierPolicy],
        leading: Callable[[], bool],
        events: EventWriter,
    ) -> None:
        super().__init__(cluster, INTERVAL, RECHECK)
        self._policy = policy
        self._leading = leading
        self._events = events
        self._told: Mapping[str, str] = {}

    async def _round(self) -> None:
        if not self._leading():
            return
        policy, tenants = self._policy(), self._cluster.tenants()
        found: dict[str, str] = {}
        for each in self._cluster.namespaces():
            problems = "; ".join(map(sentence, namespace_warnings(each.labels, policy, tenants)))
            if problems and problems != self._told.get(each.name):
                self._events.add(Regarding("v1", "Namespace", each.name, each.uid, each.name), REASON, problems)
            found |= {each.name: problems} if problems else {}
        self._told = found
