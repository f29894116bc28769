"""Whose account counts a namespace: the next change of each, such that it is open in one account at most.

A namespace that moves is closed in the old account, opened in the new one with its pods and with what the old one has
promised, and then dropped from the old one. One move ends before the next begins. Why each step: docs/ledger.md.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from webhook.ledger.account import Account, NamespaceState


@dataclass(frozen=True, slots=True)
class Change:
    """Namespaces of one account that get another state; None: they are dropped. `carried_from`: the account that they
    come from, with its reservations for them.
    """

    tenant: str
    state: NamespaceState | None
    namespaces: tuple[str, ...]
    carried_from: str = ""


def next_changes(accounts: Mapping[str, Account], wanted: Mapping[str, str]) -> list[Change]:
    """The next step of each namespace. `accounts`: all that there are, sealed. `wanted`: the tenant of a namespace."""
    homes = defaultdict[str, dict[str, NamespaceState]](dict)
    for tenant, account in accounts.items():
        for namespace, state in account.namespaces.items():
            homes[namespace][tenant] = state
    grouped = defaultdict[tuple[str, NamespaceState | None, str], list[str]](list)
    for namespace in sorted({*homes, *wanted}):
        home = wanted.get(namespace)
        for step in _step(namespace, homes.get(namespace, {}), home if home in accounts else None, accounts):
            grouped[step].append(namespace)
    return [Change(tenant, state, tuple(names), source) for (tenant, state, source), names in grouped.items()]


def _step(
    namespace: str, homes: Mapping[str, NamespaceState], wanted: str | None, accounts: Mapping[str, Account]
) -> Iterator[tuple[str, NamespaceState | None, str]]:
    """The account that changes, the state that the namespace gets there, and the account that it comes from."""
    if len(homes) > 1:  # the move ends before another begins
        yield from ((home, None, "") for home, state in homes.items() if state == "closed")
        return
    match next(iter(homes.items()), None):
        case None if wanted:
            yield wanted, "open", ""
        case (home, "open") if home != wanted:
            yield home, "closed", ""
        case (home, "closed") if wanted:
            yield wanted, "open", home if home != wanted else ""
        case (home, "closed") if not any(each.namespace == namespace for each in accounts[home].reservations):
            yield home, None, ""
