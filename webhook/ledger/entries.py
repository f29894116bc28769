"""What a ledger in memory keeps of a holder: its charges, and the changes of it that were allowed and not yet seen."""

from dataclasses import dataclass, replace
from typing import Self

from webhook.policy.quota.charges import Charge


@dataclass(frozen=True, slots=True)
class Move:
    """A change of flavor that was allowed. `until`: the time at which it has come to nothing if it was not seen."""

    charge: Charge
    until: float


@dataclass(frozen=True, slots=True)
class Entry:
    """What a holder has booked. `until`: the clock's time at which a reservation or a deletion lapses.

    While a move is under way the holder has both: whether the change was stored is known once it is seen.
    """

    namespace: str
    charges: tuple[Charge, ...]
    until: float | None
    seen: bool
    place: str = ""
    moves: tuple[Move, ...] = ()

    @property
    def lapses(self) -> float | None:
        """When something of it lapses next."""
        return min(
            (each for each in (self.until, *(move.until for move in self.moves)) if each is not None), default=None
        )

    def moving(self, move: Move) -> Self:
        """With one more move, or with a later end of it."""
        return replace(self, moves=(*self.moves_but(move.charge.flavor), move))

    def moves_but(self, flavor: str | None) -> tuple[Move, ...]:
        """The moves to other flavors than that."""
        return tuple(move for move in self.moves if move.charge.flavor != flavor)

    def at(self, now: float) -> Self | None:
        """What is left of it by now."""
        if self.until is not None and self.until <= now:
            return None
        return replace(self, moves=tuple(move for move in self.moves if move.until > now))
