"""Queues that reserve GPUs: what the leader writes into an account for the head of one, here without a leader."""

from collections.abc import Mapping
from decimal import Decimal

from msgspec.structs import replace

from tests.builders.counted_ledger import CountedLedger
from webhook.ledger.account import Entry, NamespaceState
from webhook.ledger.protocol import Gated, Holding
from webhook.policy.quota.charges import Charge
from webhook.policy.values.tenants import Tenant


def reserve(ledger: CountedLedger, rank: int, gpus: Mapping[str, int], namespace: str = "team-alpha") -> None:
    """Let a ledger reserve `gpus` of rows, by their labels, for a new head whose tier has the value `rank`."""
    ledger.observe("head", Holding(namespace, Charge(Decimal(1)), name="head", gated=Gated(rank, "", "1")))
    version = ledger.store.newest("alpha")
    reserves = {row: Decimal(number) for row, number in gpus.items()}
    head = Entry(uid="head", namespace=namespace, state="ForQueue", reserves=reserves, rank=rank)
    others = (each for each in version.account.entries if each.state != "ForQueue")
    namespaces: dict[str, NamespaceState] = {**version.account.namespaces, namespace: "open"}
    account = replace(version.account, namespaces=namespaces, entries=(*others, head))
    ledger.store.set(version.tenant or Tenant("alpha"), account)
