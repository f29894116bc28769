"""Queues that reserve GPUs: what the leader writes into an account for the head of one, here without a leader."""

from collections.abc import Collection, Mapping
from decimal import Decimal

from msgspec.structs import replace

from webhook.ledger.accounts import Accounts
from webhook.ledger.protocol import Booked, Booking, GangBooking
from webhook.policy.quota.charges import Shortfall
from webhook.policy.values.tenants import QuotaRow, Tenant


def reserve(ledger: Accounts, rank: int, gpus: Mapping[str, int]) -> None:
    """Let a ledger reserve so many GPUs of rows, by their labels, for a head whose tier has the value `rank`."""
    usage, book = ledger.usage, ledger.book

    def kept(tenant: Tenant, newcomer: int = 0) -> dict[QuotaRow, Decimal]:
        counts = newcomer <= rank
        return {row: Decimal(gpus[row.label]) for row in tenant.rows if row.label in gpus and counts}

    def with_kept(tenant: Tenant, without: Collection[str] = ()) -> dict[QuotaRow, Decimal]:
        found = usage(tenant, without)
        return {row: found.get(row, Decimal(0)) + kept(tenant).get(row, Decimal(0)) for row in tenant.rows}

    async def book_beside(booking: Booking | GangBooking, *, dry_run: bool = False) -> Booked | Shortfall:
        tenant, ahead = booking.tenant, kept(booking.tenant, booking.rank)
        left = {replace(row, hard=row.hard - ahead.get(row, Decimal(0))): row for row in tenant.rows}
        answer = await book(replace(booking, tenant=replace(tenant, rows=tuple(left))), dry_run=dry_run)
        if isinstance(answer, Booked):
            return answer
        met = {left[row]: used + ahead.get(left[row], Decimal(0)) for row, used in answer.usage.items()}
        return replace(answer, row=left[answer.row], usage=met)

    ledger.kept, ledger.usage, ledger.book = kept, with_kept, book_beside  # type: ignore[method-assign]
