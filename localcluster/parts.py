"""Makes the parts of a cluster that the cache lacks, one after the other, and says how far that is."""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

from localcluster.binaries import Binary, find, found


@dataclass(frozen=True)
class Part:
    """One entry of the cache. `make` gets the words that begin its line of progress."""

    minutes: float
    is_there: Callable[[], bool]
    make: Callable[[str], object]


def of_binary(binary: Binary) -> Part:
    """Return the part that is a program."""
    return Part(binary.minutes, lambda: found(binary) is not None, partial(find, binary))


def have(parts: Iterable[Part], clock: Callable[[], float] = time.monotonic) -> None:
    """Make the parts that are missing. Each line names a part's number, and the minutes of all that are still missing.

    The minutes of the table are those of one machine, so they follow the pace of the parts that were made.
    """
    missing = [part for part in parts if not part.is_there()]
    began, made, pace = clock(), 0.0, 1.0
    for number, part in enumerate(missing):
        left = pace * sum(each.minutes for each in missing[number:])
        part.make(f"{number + 1} of {len(missing)}, about {max(1, round(left))} min left: ")
        made += part.minutes
        pace = (clock() - began) / 60 / made
