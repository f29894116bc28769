"""Places the labels of moments on a line so that no two overlap and no label's stem crosses another label.

A label stands to the right of its stem, in one of several rows above the line.
"""

from collections.abc import Sequence
from dataclasses import dataclass

CHARACTER = 6.7
"""The width of one at SIZE, in the wider ones of the fonts that a reader may have."""
SIZE = 12
INDENT = 4
GAP = 8


@dataclass(frozen=True, slots=True)
class Flag:
    """A moment at `x`, in words."""

    x: float
    words: str

    @property
    def end(self) -> float:
        """The end of its label."""
        return self.x + INDENT + width(self.words)


def width(words: str) -> float:
    """Return their width, rather too much than too little."""
    return CHARACTER * (len(words) + 1)


def rows(flags: Sequence[Flag]) -> list[int]:
    """The row of each flag, 0 the lowest; they must come in the order of their moments.

    From the right to the left: a label lies above all whose stems rise within its width.
    """
    found: list[int] = []
    for index in reversed(range(len(flags))):
        below = zip(flags[index + 1 :], found, strict=True)
        found.insert(0, max((row + 1 for other, row in below if other.x < flags[index].end + GAP), default=0))
    return found
