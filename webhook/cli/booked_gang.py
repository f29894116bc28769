"""The charge of a gang, as the account in its TenantQuota's status has it."""

from collections.abc import Collection
from decimal import Decimal

from webhook.ledger.account import Account, Drawn, Gang
from webhook.objects.quantities import written
from webhook.readmodel.explained import GangShown
from webhook.readmodel.shown import as_number


def booked_gang(account: Account, namespace: str, uids: Collection[str]) -> GangShown | None:
    """The gang of one of these uids that holds a charge as a whole; None where none does."""
    found = next((each for each in account.gangs if each.namespace == namespace and each.uid in uids), None)
    return _shown(found, account) if found else None


def _shown(gang: Gang, account: Account) -> GangShown:
    booked = gang.declared or max((each.charges for each in gang.promises), key=_gpus, default=())
    listed = (charge for pod in account.pods if pod.draws_on == gang.key for charge in pod.charges)
    return GangShown(f"{gang.kind}/{gang.name}", _as_text(booked), as_number(_gpus((*gang.held, *listed))))


def _gpus(drawn: tuple[Drawn, ...]) -> Decimal:
    return sum((each.gpus for each in drawn), Decimal(0))


def _as_text(drawn: tuple[Drawn, ...]) -> str:
    return ", ".join(f"{written(each.gpus)} GPUs{f' as {each.tier}' if each.tier else ''}" for each in drawn) or "0"
