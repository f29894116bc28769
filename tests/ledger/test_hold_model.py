"""The model of Hold holds by its rules, and breaks without any one of them."""

import pytest

from tests.ledger.model.hold import SCENARIOS, SHOWN_IN, explore
from tests.ledger.model.hold_state import RULES


def test_by_all_rules_nothing_is_overdrawn_and_whoever_fits_is_opened() -> None:
    """In one scenario; `python -m tests.ledger.model.hold` takes all, and some minutes."""
    states, wrong, _ = explore(SCENARIOS["refused"])
    assert not wrong
    assert states > 4000


BROKEN = {
    "overdrawn": ("gate", "booked", "seen", "stays", "term", "version", "before", "touch"),
    "for ever": ("finish", "release", "whole", "never", "drain"),
    "of order": ("heirs", "keep", "line", "strict", "queue"),
}
"""What comes of it where a rule is left out."""


@pytest.mark.parametrize(("rule", "harm"), [(rule, harm) for harm, rules in BROKEN.items() for rule in rules])
def test_without_a_rule_it_breaks(rule: str, harm: str) -> None:
    _, wrong, trace = explore(SCENARIOS[SHOWN_IN.get(rule, "line")], without=rule)
    assert harm in wrong, trace


def test_each_rule_is_left_out_once() -> None:
    assert sorted(RULES) == sorted(rule for rules in BROKEN.values() for rule in rules)
