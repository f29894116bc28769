"""Whose place a replacement takes: that of a preempted pod of the same controller, while that pod still ends.

A preempted pod holds its GPUs until it has saved, and its controller makes the replacement at once. Charged side by
side the two would not fit a full quota, and the controller would wait for its back-off.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable

from webhook.ledger.protocol import Booking, Holding


class Places:
    """Preempted pods and their heirs, by uid. A victim has one heir. An heir is no victim while its own is there."""

    def __init__(self) -> None:
        self._controllers: dict[str, str] = {}
        self._pods: Counter[str] = Counter()
        self._preempted: defaultdict[str, dict[str, None]] = defaultdict(dict)
        self._heirs: dict[str, str] = {}
        self._victims: dict[str, str] = {}

    def of(self, holder: str) -> str:
        """The place that a pod stands in, called after the victim's uid; "" where it stands alone."""
        preempted = holder in self._preempted.get(self._controllers.get(holder, ""), ())
        return self._victims.get(holder, holder if preempted else "")

    def observe(self, holder: str, holding: Holding) -> None:
        """A pod exists."""
        if holding.controller and holder not in self._controllers:
            self._controllers[holder] = holding.controller
            self._pods[holding.controller] += 1
        if holding.controller and holding.preempted:
            self._preempted[holding.controller][holder] = None

    def release(self, holder: str) -> str | None:
        """A pod is gone, or its booking has come to nothing. If it was a victim: the heir, which stands alone now."""
        self._leave(holder, self._controllers.pop(holder, ""))
        self._heirs.pop(self._victims.pop(holder, ""), None)
        heir = self._heirs.pop(holder, None)
        self._victims.pop(heir or "", None)
        return heir

    def inherit(self, heir: str, victim: str) -> None:
        """A booking takes the place of a preempted pod."""
        self._heirs[victim], self._victims[heir] = heir, victim

    def may_replace(self, booking: Booking) -> bool:
        """Whether the controller has pods, one of which it may replace."""
        return booking.controller in self._pods

    def free_for(self, booking: Booking) -> Iterable[str]:
        """Preempted pods of the same controller whose place nobody has taken. A gang's booking takes none."""
        if len(booking.charges) != 1:
            return ()
        preempted = self._preempted.get(booking.controller, ())
        return [uid for uid in preempted if uid not in self._heirs and uid not in self._victims]

    def _leave(self, holder: str, controller: str) -> None:
        self._pods[controller] -= 1
        if self._pods[controller] <= 0:
            del self._pods[controller]
        preempted = self._preempted[controller]
        preempted.pop(holder, None)
        if not preempted:
            del self._preempted[controller]
