"""A verdict under each mode, and in a word."""

import pytest

from webhook.admission.verdict import Verdict
from webhook.admission.webhook import under
from webhook.policy.assignment.request import Assignment
from webhook.policy.values.tier_policy import Mode

VERDICT = Verdict(Assignment(None, "label", "x"), ({"op": "add"},), ("careful",), "no", "alpha")


def test_each_mode_lets_through_its_part_of_a_verdict() -> None:
    assert under(Mode.Enforce, VERDICT) == VERDICT
    warned = under(Mode.Warn, VERDICT)
    assert (warned.refusal, warned.patch) == (None, VERDICT.patch)
    assert warned.warnings == ("careful", "would be refused: no")
    seen = under(Mode.Audit, VERDICT)
    assert (seen.patch, seen.warnings, seen.refusal) == ((), (), None)
    assert (seen.assignment, seen.tenant) == (VERDICT.assignment, "alpha")


@pytest.mark.parametrize(
    ("verdict", "outcome"), [(VERDICT, "denied"), (Verdict(patch=({},)), "patched"), (Verdict(), "allowed")]
)
def test_a_verdict_in_a_word(verdict: Verdict, outcome: str) -> None:
    assert verdict.outcome == outcome
