"""The account of the model: entries in slots, their usage of each row, and the room for a booking."""

from functools import lru_cache
from typing import NamedTuple

Amounts = tuple[int, ...]
"""GPUs on each row of the quota."""


class Item(NamedTuple):
    """One create, or one change of an object (`changes`) that leaves its object with other `wants`.

    Items are known by their index. `maker`: the outermost workload that makes the pod. `after`: its maker makes it once
    that create was refused or that pod is ending. `place`: a name that several creates share.
    """

    name: str
    wants: Amounts = (1,)
    maker: str = ""
    after: int = -1
    gang: int = -1
    place: str = ""
    claim: str = ""
    changes: int = -1
    is_workload: bool = False
    tier: int = 0
    age: int = 0
    gated: bool = True  # where the tenant holds: it can wait behind the gate

    @property
    def slot(self) -> str:
        return f"claim {self.claim}" if self.claim else f"name {self.place or self.name}"

    @property
    def family(self) -> tuple[str, int]:
        """Return the owner whose slots it may take over."""
        return self.maker, self.gang


class Entry(NamedTuple):
    """`state`: Used, Terminating (used, and preempted), Reserved, Left, Kept."""

    item: int
    slot: str
    state: str
    wants: Amounts
    inside: int = -1
    tier: int = 0


Entries = frozenset[Entry]
REAL, WITH_LEFT = "UTR", "UTRL"


def value(entries: Entries, states: str, rows: int) -> Amounts:
    """Sum the outermost slots: each counts its largest entry, or the sum of the slots inside where that is more."""
    return tuple(_on_row(entries, states, row) for row in range(rows))


@lru_cache(maxsize=1 << 18)
def _on_row(entries: Entries, states: str, row: int) -> int:
    slots, gangs = dict[tuple[int, str], int](), dict[int, int]()
    for each in entries:
        if each.state in states:
            key = each.inside, each.slot
            slots[key] = max(slots.get(key, 0), each.wants[row])
    for (inside, _), gpus in slots.items():
        gangs[inside] = gangs.get(inside, 0) + gpus
    total = gangs.pop(-1, 0)
    for gang, gpus in gangs.items():
        own = slots.get((-1, f"gang {gang}"), 0)
        total += max(gpus - own, 0)
    return total


class Fit(NamedTuple):
    """Judges a booking. The switches are rules of `books_state.RULES`."""

    quota: Amounts
    nothing: bool = True
    lowered: bool = True

    def short_rows(self, before: Entries, after: Entries, tier: int) -> list[int]:
        """Return the rows that have no room for what a booking of this tier adds."""
        return [row for row in range(len(self.quota)) if not self._fits(before, after, tier, row)]

    def _fits(self, before: Entries, after: Entries, tier: int, row: int) -> bool:
        hard, counting = self.quota[row], frozenset(e for e in after if e.state != "K" or e.tier >= tier)
        if _on_row(counting, "UTRLK", row) <= hard:
            return True
        now, then = _on_row(before, WITH_LEFT, row), _on_row(after, WITH_LEFT, row)
        if not self.nothing or then > now:
            return False
        grows = _on_row(after, REAL, row) > _on_row(before, REAL, row)
        return not (self.lowered and grows and then > hard)


def added(before: Entries, after: Entries, rows: int) -> Amounts:
    pairs = zip(value(after, WITH_LEFT, rows), value(before, WITH_LEFT, rows), strict=True)
    return tuple(then - now for then, now in pairs)
