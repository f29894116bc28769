"""The latest verdicts of this process, as people ask for them."""

from collections import deque
from collections.abc import Iterator

from webhook.readmodel.shown import Shown

MOST = 200


class VerdictShown(Shown, frozen=True):
    """What was answered. `outcome` is a word: let in, refused, would be refused, try again; `why` a sentence or a step.

    `time` is in seconds since 1970.
    """

    time: float
    kind: str
    namespace: str
    name: str
    outcome: str
    tier: str
    tenant: str
    why: str
    trace: tuple[str, ...] = ()


class RecentVerdicts:
    """So many of them; the oldest goes first."""

    def __init__(self) -> None:
        self._kept: deque[VerdictShown] = deque(maxlen=MOST)

    def add(self, verdict: VerdictShown) -> None:
        """It has been answered."""
        self._kept.append(verdict)

    def __iter__(self) -> Iterator[VerdictShown]:
        """The latest first."""
        return reversed(self._kept)
