"""A verdict under each mode, and in a word."""

import pytest

from webhook.admission.reviewer import Verdict
from webhook.admission.webhook import under
from webhook.objects.refusal import AdmissionWarning, Phrase, Reason, Refusal
from webhook.policy.assignment.request import Assignment
from webhook.policy.values.tier_policy import Mode

NO = Refusal(Reason.INVALID, "no-object")
CAREFUL = AdmissionWarning("no-controller")
VERDICT = Verdict(Assignment(None, "label", Phrase("default-of-policy")), ({"op": "add"},), (CAREFUL,), NO, "alpha")


def test_each_mode_lets_through_its_part_of_a_verdict() -> None:
    assert under(Mode.Enforce, VERDICT) == VERDICT
    warned = under(Mode.Warn, VERDICT)
    assert (warned.refusal, warned.patch) == (None, VERDICT.patch)
    assert warned.warnings == (CAREFUL, AdmissionWarning("would-be-refused", refusal=NO))
    seen = under(Mode.Audit, VERDICT)
    assert (seen.patch, seen.warnings, seen.refusal) == ((), (), None)
    assert (seen.assignment, seen.tenant) == (VERDICT.assignment, "alpha")


@pytest.mark.parametrize(
    ("verdict", "outcome"), [(VERDICT, "denied"), (Verdict(patch=({},)), "patched"), (Verdict(), "allowed")]
)
def test_a_verdict_in_a_word(verdict: Verdict, outcome: str) -> None:
    assert verdict.outcome == outcome
