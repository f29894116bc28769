"""Nodes that are reserved for a pod while others are evicted there for devices of DRA."""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Self

from webhook.kube.client import RFC_3339
from webhook.objects.refusal import Phrase
from webhook.policy.preemption.reservation import Reservation
from webhook.report.shown import Shown
from webhook.sentences.sentence import sentence


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
        """Return it with this pod, or with the first of its pods."""
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
