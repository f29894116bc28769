"""The wording of values, for tests that compare sentences."""

from collections.abc import Iterable

from webhook.objects.refusal import Phrase
from webhook.policy.assignment.assigned_by import assigned_by
from webhook.policy.assignment.request import Assignment
from webhook.sentences.sentence import sentence


def words(phrases: Iterable[Phrase]) -> tuple[str, ...]:
    """The sentence of each."""
    return tuple(map(sentence, phrases))


def deciding_line(assignment: Assignment | None) -> str:
    """The deciding line of an assignment."""
    return str(assigned_by(assignment)) if assignment else ""
