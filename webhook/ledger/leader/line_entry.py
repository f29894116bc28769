"""What stands in a line, and what it waits for."""

from collections.abc import Mapping
from decimal import Decimal

import msgspec

from webhook.ledger.leader.gated_pods import GatedPod
from webhook.ledger.protocol import GangBooking
from webhook.policy.quota.charges import Charge, Shortfall
from webhook.policy.values.tenants import QuotaRow


class LineEntry(msgspec.Struct, frozen=True):
    """What waits as one: a gang with those of its pods that are there, or a pod alone.

    `entitled`: it takes the place of a pod that has ended, whose GPUs may be `kept`, or `draws` on what its gang holds
    already. Of `pods` the last `beyond` say that they are of the gang, and are more than it asks for: once it is let
    in, each waits by itself. `grown`: when the gang began to ask for more, if it did; it `has` what it was let
    in with, or what its pods hold where it never was.
    """

    pods: tuple[GatedPod, ...]
    gang: GangBooking | None = None
    entitled: bool = False
    kept: bool = False
    draws: bool = False
    beyond: int = 0
    grown: str = ""
    has: tuple[Charge, ...] = ()

    @property
    def first(self) -> GatedPod:
        return self.pods[0]

    @property
    def uid(self) -> str:
        """What it is as a whole: a gang stays the same, whichever of its pods are made anew."""
        return self.gang.uid if self.gang else self.first.uid

    @property
    def turn(self) -> tuple[int, str, int]:
        """By its tier, then by when half of what it asks for was held, then by which was seen first.

        A gang that grows while it waits, or one of whose pods is older than its workload runs, is no older for that.
        """
        within = self.pods[: len(self.pods) - self.beyond] or self.pods
        since = sorted(each.turn[1] for each in within if each.asks_for_gpus)
        priority, first, seen = self.first.turn
        return priority, max(since[len(since) // 2] if since else first, self.grown), seen

    @property
    def charges(self) -> tuple[Charge, ...]:
        """What it asks for."""
        return self.gang.charges if self.gang else tuple(each.holding.charge for each in self.pods)


class InLine(msgspec.Struct, frozen=True):
    """Who waits on: for what is short, or behind somebody else where nothing is.

    It keeps what gets free on the rows that are short, and on others what it needs there: so many GPUs by row. One that
    waits `in_vain` keeps nothing.
    """

    waiting: LineEntry
    short: Shortfall | None = None
    keeps: Mapping[QuotaRow, Decimal] = msgspec.field(default_factory=dict)
    in_vain: bool = False
