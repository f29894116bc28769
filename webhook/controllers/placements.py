"""Measures how long pods wait for their node, from one time of the API server to another."""

from collections.abc import Callable
from datetime import datetime

from webhook.readmodel.gpus_now import WaitingPod


class Placements:
    """`bound` is told of each pod that waited and has a node now; `waited` of the seconds, with the pod's tier.

    Only who sees a pod wait counts it: of those that lead one after the other one does, or none for a pod that got its
    node while nobody led.
    """

    def __init__(self, waited: Callable[[float, str], None]) -> None:
        self._waited = waited

    def bound(self, _uid: str, pod: WaitingPod, at: str) -> None:
        if (seconds := seconds_between(pod.since, at)) is not None:
            self._waited(seconds, pod.tier)


def seconds_between(since: str, until: str) -> float | None:
    """From one time in RFC 3339 to another, 0 at least; None where one of them is none."""
    try:
        return max((datetime.fromisoformat(until) - datetime.fromisoformat(since)).total_seconds(), 0.0)
    except (ValueError, TypeError):
        return None
