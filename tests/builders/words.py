"""The wording of values, for tests that compare sentences."""

import re
from collections.abc import Iterable

from webhook.objects.refusal import Phrase
from webhook.policy.assignment.assigned_by import assigned_by
from webhook.policy.assignment.request import Assignment
from webhook.sentences import sentence as sentences


def without_id(sentence: str) -> str:
    """Return a sentence without the id of the refusal at its end: tests assert ids once, and facts elsewhere."""
    return re.sub(r" \[[a-z-]+\]$", "", sentence)


def sentence(phrase: Phrase) -> str:
    """Return the sentence of a phrase, without the id of a refusal."""
    return without_id(sentences.sentence(phrase))


def told(problem: Exception) -> str:
    """Return the sentence of an exception, without the id of a refusal."""
    return without_id(sentences.problem_text(problem))


def words(phrases: Iterable[Phrase]) -> tuple[str, ...]:
    """Return the sentence of each phrase."""
    return tuple(map(sentence, phrases))


def deciding_line(assignment: Assignment | None) -> str:
    """The deciding line of an assignment."""
    return str(assigned_by(assignment)) if assignment else ""
