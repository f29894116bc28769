"""What stays free though it has room: for heirs of pods that were deleted, and for those who are first in a line."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal

from msgspec.structs import replace

from webhook.ledger.account import Account
from webhook.ledger.account_usage import own_on, usage_of
from webhook.ledger.leader.line_entry import LineEntry
from webhook.ledger.leader.pod_view import PodView
from webhook.ledger.versions import WorkingCopy
from webhook.policy.quota.charges import Charge, own_gpus, together
from webhook.policy.quota.held import ALL
from webhook.policy.values.tenants import QuotaRow, Usage

NOTHING = Decimal(0)
KeptRows = Mapping[QuotaRow, Decimal]
"""How many GPUs are kept on each of these rows: `ALL` that gets free there, or so many."""


class KeptFree:
    """`places`: what is kept for heirs."""

    def __init__(self, places: Sequence[Charge]) -> None:
        self._places = places
        self._needed = defaultdict[QuotaRow, Decimal](Decimal)

    def keep(self, rows: Iterable[QuotaRow], waiting: LineEntry, usage: Usage) -> KeptRows:
        """The rows that have no room for all of it. On its others it is kept what it needs beyond what ends there.

        Else somebody of another tier fills the total meanwhile, and it never has room on both rows at once. What its
        gang has already nobody else takes.
        """
        charges = waiting.charges
        asked = {row: together(each for each in charges if row.counts(each.tier, each.flavor)) for row in rows}
        missing = {row: usage.get(row, NOTHING) + gpus - row.hard for row, gpus in asked.items()}
        short = {row for row, gpus in missing.items() if gpus > 0}
        kept = dict.fromkeys(short, ALL)
        for row in asked.keys() - short:
            ends = max((missing[each] for each in short if _is_part_of(each, row)), default=NOTHING)
            kept[row] = max(asked[row] - own_on(row, waiting.has) - ends, NOTHING)
            self._needed[row] += kept[row]
        return kept

    def used_by_others(self, copy: WorkingCopy, waiting: LineEntry) -> Usage:
        """The usage with what is kept, without what it has already: its gang's GPUs, and the claims that it shares.

        Nothing where nothing is kept, and nobody asks.
        """
        if not self._places and not self._needed:
            return {}
        claims = {claim for each in waiting.charges for claim in each.shared}
        usage = usage_of(copy.account, copy.version.in_force, claims) if claims else copy.usage
        return {row: gpus + self._kept_on(row) - own_on(row, waiting.has) for row, gpus in usage.items()}

    def _kept_on(self, row: QuotaRow) -> Decimal:
        places = together(each for each in self._places if row.counts(each.tier, each.flavor))
        return places + self._needed.get(row, NOTHING)


def _is_part_of(row: QuotaRow, whole: QuotaRow) -> bool:
    """Whether all that counts on a row counts on the other too."""
    return whole.tier in (None, row.tier) and whole.flavor in (None, row.flavor)


def places_kept(account: Account, view: PodView) -> Iterator[Charge]:
    """What pods held that were deleted a moment ago, and whose controllers have not made the next ones yet.

    A gang's room is its own for as long as it is booked, but not what its pods held beyond that; and a claim is held by
    those that share it still.
    """
    places = [each for each in view.gated.kept() if each.namespace in account.namespaces]
    if not places:
        return
    heirs = Counter(each.holding.made_by for each in view.gated.of(account.namespaces))
    missing = {each.key: own_gpus(each.let_in_with) - own_gpus(view.held_by(each, ())) for each in account.gangs}
    held = {claim for each in view.claims(account.namespaces, ()) for claim in each.shared}
    for each in places:
        if heirs[each.made_by] > 0:
            heirs[each.made_by] -= 1
        elif missing.get(each.draws_on, NOTHING) > 0:
            missing[each.draws_on] -= each.charge.own
        elif not view.workloads.has_ended(each.draws_on[1]):
            shared = {claim: gpus for claim, gpus in each.charge.shared.items() if claim not in held}
            yield replace(each.charge, gpus=each.charge.own + sum(shared.values()), shared=shared)
