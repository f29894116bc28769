"""The models of Hold and of an account hold by their rules, and break without any one of them."""

import pytest

from tests.ledger.model import books, books_state, hold, hold_state
from tests.ledger.model.books_scenarios import QUEUED, RETRIES, SCENARIOS, SHOWN_IN


def test_by_all_rules_nothing_is_overdrawn_and_whoever_fits_is_opened() -> None:
    """In one scenario; `python -m tests.ledger.model.hold` takes all, and some minutes."""
    states, wrong, _ = hold.explore(hold.SCENARIOS["refused"])
    assert not wrong
    assert states > 4000


BROKEN = {
    "overdrawn": ("gate", "booked", "seen", "stays", "term", "version", "before", "touch"),
    "for ever": ("finish", "release", "whole", "never", "drain"),
    "of order": ("heirs", "keep", "missed", "line", "strict", "queue"),
}
"""What comes of it where a rule is left out."""


@pytest.mark.parametrize(("rule", "harm"), [(rule, harm) for harm, rules in BROKEN.items() for rule in rules])
def test_without_a_rule_it_breaks(rule: str, harm: str) -> None:
    _, wrong, trace = hold.explore(hold.SCENARIOS[hold.SHOWN_IN.get(rule, "line")], without=rule)
    assert harm in wrong, trace


def test_each_rule_is_left_out_once() -> None:
    assert sorted(hold_state.RULES) == sorted(rule for rules in BROKEN.values() for rule in rules)


@pytest.mark.parametrize("name", ["move", "lost", "next", "nodes", "tiers", "lowered", "crash", "never"])
def test_an_account_in_slots_is_exact(name: str) -> None:
    """In small scenarios; `python -m tests.ledger.model.books` takes all, and some minutes."""
    states, wrong, trace = books.explore(SCENARIOS[name])
    assert not wrong, trace
    assert states > 400


BROKEN_ACCOUNTS = {
    "overdrawn": (
        *(
            "swap",
            "draw",
            "seal",
            "horizon",
            "term",
            "quorum",
            "age",
            "proof",
            "over",
            "seen",
            "one",
            "apart",
            "own",
            "part",
        ),
        *("gate", "lowered"),
    ),
    "refused": ("news", "names", "replaces", "claim", "move", "inside", "promise", "retry"),
    "for ever": ("whole", "sure", "nothing", "never"),
    "passed": ("kept", "each row", "total", "strict"),
    "taken before": ("left",),
    "overtaken": ("age of work",),
}


@pytest.mark.parametrize(("rule", "harm"), [(rule, harm) for harm, rules in BROKEN_ACCOUNTS.items() for rule in rules])
def test_without_a_rule_an_account_breaks(rule: str, harm: str) -> None:
    _, wrong, trace = books.explore(SCENARIOS[SHOWN_IN.get(rule, "core")], without=rule)
    assert harm in wrong, trace


def test_each_rule_of_an_account_is_left_out_once() -> None:
    """A look-up of names spares reservations that come to nothing, and nothing breaks without it."""
    assert sorted(books_state.RULES) == sorted(
        ["taken", *(rule for rules in BROKEN_ACCOUNTS.values() for rule in rules)]
    )
    assert {rule for rule, name in SHOWN_IN.items() if name in QUEUED} == set(books_state.HOLD)


@pytest.mark.parametrize("name", ["lost", "forged"])
def test_a_retry_may_not_share_the_slot_of_a_create_that_may_be_stored_late(name: str) -> None:
    """Not even if a quorum read finds no such pod; behind a gate it may, and it may wait."""
    ways = {way: books.explore(RETRIES[name]._replace(way=way))[1] for way in ("own", "share", "gate", "wait")}
    assert "overdrawn" in ways.pop("share")
    assert not any(ways.values()), ways
