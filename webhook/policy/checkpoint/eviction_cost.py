"""What an eviction would lose, in numbers by which other schedulers order what has the same priority.

Both numbers go in steps: what is written stays as long as it is off by less than one.
"""

from collections.abc import Iterable
from itertools import pairwise
from math import floor, log2

from webhook.policy.checkpoint.at_risk import MINUTE

LEAST = 5 * MINUTE
"""GPU-seconds at risk that still are boost 0. Each boost stands for twice the work of the one below."""
MOST = 16
"""The highest boost. Its work is 5,461 GPU-hours."""
SAVES_APART = 5 * MINUTE
"""A save that comes sooner after the one that is written stays unwritten."""


def room_between(values: Iterable[int]) -> int:
    """The highest boost by which nothing of one of these priorities reaches the next."""
    return min((above - below - 1 for below, above in pairwise(sorted(values))), default=MOST)


def boost(gpu_seconds: float, written: int, room: int) -> int:
    """The boost for so much work at risk; what is `written` stays until it is off by a whole one.

    It is never below 0: a workload below its own priority would be evicted by what waits at the same.
    """
    wanted = min(max(log2(max(gpu_seconds, LEAST) / LEAST), 0.0), room, MOST)
    return written if abs(wanted - written) < 1 else floor(wanted)


def save_time(saved: float, written: float) -> float:
    """When a pod has saved last, in whole seconds; what is `written` stays while it is about the same time."""
    return written if abs(saved - written) < SAVES_APART else floor(saved)
