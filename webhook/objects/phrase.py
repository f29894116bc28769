"""What gpu-tiers says, as a value: which sentence it is, and what fills it. `webhook/sentences` has the texts.

Code compares and asks values. A text is made of one when it leaves: on the wire, in an event, on a terminal, in a log.
"""

from dataclasses import dataclass
from decimal import Decimal


@dataclass(frozen=True, slots=True, init=False)
class Phrase:
    """A sentence or a part of one. A field is a text, a number, a tuple of them, or a phrase of its own."""

    id: str
    fields: tuple[tuple[str, object], ...]

    def __init__(self, phrase: str, /, **fields: object) -> None:
        object.__setattr__(self, "id", phrase)
        object.__setattr__(self, "fields", tuple(fields.items()))

    def get(self, name: str) -> object:
        """What fills a place; None where there is no such place."""
        return next((value for field, value in self.fields if field == name), None)


class Aside(Phrase):
    """A part that says what is around a matter, such as what has room now: another one is no other matter."""

    __slots__ = ()


class AdmissionWarning(Phrase):
    """What somebody should know of an object that is let in. That of a documented id is shown with it in brackets."""

    __slots__ = ()


def matter(phrase: Phrase) -> tuple[object, ...]:
    """What a phrase is about, to compare: all of it but its numbers and what is said aside."""
    return phrase.id, *((name, _matter(value)) for name, value in phrase.fields)


def _matter(value: object) -> object:
    if isinstance(value, Aside | int | Decimal):
        return None
    if isinstance(value, Phrase):
        return matter(value)
    return tuple(map(_matter, value)) if isinstance(value, tuple) else value
