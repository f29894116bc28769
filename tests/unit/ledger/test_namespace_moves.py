"""The next step of a namespace on its way into the account of its tenant."""

from collections.abc import Mapping

from webhook.ledger.account import Account, Entry, NamespaceState
from webhook.ledger.leader.moving import Change, next_changes


def accounts(**namespaces: Mapping[str, NamespaceState]) -> dict[str, Account]:
    return {tenant: Account(namespaces=dict(states)) for tenant, states in namespaces.items()}


def test_a_namespace_that_is_nowhere_is_opened():
    wanted = {"n": "alpha", "m": "alpha", "nobody's": "unknown"}
    assert next_changes(accounts(alpha={}, beta={}), wanted) == [Change("alpha", "open", ("m", "n"))]


def test_a_namespace_at_home_stays():
    assert next_changes(accounts(alpha={"n": "open"}), {"n": "alpha"}) == []


def test_a_move_closes_then_opens_then_drops():
    wanted = {"n": "beta"}
    assert next_changes(accounts(alpha={"n": "open"}, beta={}), wanted) == [Change("alpha", "closed", ("n",))]
    assert next_changes(accounts(alpha={"n": "closed"}, beta={}), wanted) == [Change("beta", "open", ("n",), "alpha")]
    both = accounts(alpha={"n": "closed"}, beta={"n": "open"})
    assert next_changes(both, wanted) == [Change("alpha", None, ("n",))]


def test_a_label_that_turns_back_opens_the_old_account_again():
    assert next_changes(accounts(alpha={"n": "closed"}, beta={}), {"n": "alpha"}) == [Change("alpha", "open", ("n",))]


def test_one_move_ends_before_the_next_begins():
    both = accounts(alpha={"n": "closed"}, beta={"n": "open"})
    assert next_changes(both, {"n": "alpha"}) == [Change("alpha", None, ("n",))]


def test_a_namespace_that_leaves_all_tenants_is_dropped_once_nothing_is_reserved_there():
    assert next_changes(accounts(alpha={"n": "open"}), {}) == [Change("alpha", "closed", ("n",))]
    reserved = Account(namespaces={"n": "closed"}, entries=(Entry(uid="u", namespace="n", state="Reserved"),))
    assert next_changes({"alpha": reserved}, {}) == []
    assert next_changes(accounts(alpha={"n": "closed"}), {}) == [Change("alpha", None, ("n",))]
