"""Hints: what a text says of a workload type, and the words in it that say so."""

import re
from collections.abc import Container, Iterable, Iterator, Sequence
from enum import IntEnum
from typing import NamedTuple

from webhook.policy.workloads.workload_types import WorkloadType

REMEMBERED = 4096
"""Texts of each sort that are remembered: pods of a workload have the same."""

_BETWEEN = re.compile(r"[^a-z0-9]+")


class Weight(IntEnum):
    """How much a hint in a command says: the larger decides."""

    LOOKS = 0
    WAITS = 1
    LAUNCHER = 2
    WORK = 3


class Hint(NamedTuple):
    """A type, and the words that say so."""

    type: WorkloadType
    words: str
    weight: Weight = Weight.WORK


def telling(text: str, table: Container[str]) -> Iterator[str]:
    """The words that a table knows, in their order; a pair (code-server) before its parts, digits at ends left out."""
    words = [word for word in _BETWEEN.split(text) if word]
    bare = [word.rstrip("0123456789") or word for word in words]
    taken = -1
    for index, word in enumerate(bare):
        pair = "-".join(bare[index : index + 2])
        if index == taken:
            continue
        if pair in table:
            taken = index + 1
            yield pair
        elif words[index] in table:
            yield words[index]
        elif word in table:
            yield word


def first(hints: Iterable[Hint], order: Sequence[WorkloadType]) -> Hint | None:
    """Of several hints, the one whose type comes first in an order."""
    return min(hints, key=lambda hint: order.index(hint.type), default=None)
