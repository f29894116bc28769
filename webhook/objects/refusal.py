"""What gpu-tiers says, as a value: which sentence it is, and what fills it. `webhook/sentences` has the texts.

Code compares and asks values. A text is made of one when it leaves: on the wire, in an event, on a terminal, in a log.
A decision says no by a Refusal, of which a sentence is made that the person can act on. A fault of gpu-tiers is any
other exception: then failurePolicy decides.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum


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


class Reason(StrEnum):
    """Why something is refused, in one word for metrics."""

    INVALID = "invalid-field"
    UNKNOWN_TIER = "unknown-tier"
    UNTIERED = "untiered"
    CONTRADICTION = "contradiction"
    CHANGED = "changed-after-assignment"
    CEILING = "ceiling"
    WORKLOAD_TYPE = "workload-type"
    FOREIGN_CLASS = "foreign-class"
    PRIORITY_CLASS = "priority-class"
    NO_TENANT = "no-tenant"
    HOOK = "hook"
    UNREADABLE = "unreadable"
    OVER_QUOTA = "over-quota"
    NAME_TAKEN = "name-taken"


OBJECT = "object"
"""The field of a refusal that is about a whole object."""


@dataclass(frozen=True, slots=True, init=False)
class Refusal(Phrase):
    """Why something is not allowed: the reason, the field if it is about one, and what its sentence tells.

    `field` is a path from the object's beginning. `place` is where that object stands in a larger one, with a dot at
    its end.
    """

    reason: Reason
    field: str
    place: str

    def __init__(self, reason: Reason, phrase: str, /, field: str = "", **fields: object) -> None:
        Phrase.__init__(self, phrase, **fields)
        object.__setattr__(self, "reason", reason)
        object.__setattr__(self, "field", field)
        object.__setattr__(self, "place", "")

    def because(self, reason: Reason) -> "Refusal":
        """The same for another reason."""
        return _with(self, reason=reason)

    def within(self, place: str) -> "Refusal":
        """The same of an object that stands at a place in another one; "" where it is that itself."""
        return _with(self, place=f"{place}.{self.place}") if place else self

    def of_template(self, path: str, *, bare: bool) -> "Refusal":
        """The same of the pod that a template makes. A `bare` one is a pod spec, and begins with what stands in it."""
        if self.field == OBJECT and not self.place:
            return _with(self, field=path or OBJECT)
        field = self.field.removeprefix("spec.") if bare and not self.place else self.field
        return _with(self, field=field).within(path)

    def same_elsewhere(self, other: "Refusal") -> bool:
        """Whether both say the same, perhaps of another place."""
        return (self.id, self.fields) == (other.id, other.fields)

    def same_mistake(self, other: "Refusal") -> bool:
        """Whether both are about the same, whatever the numbers: what is too large may be made smaller in steps."""
        return (matter(self), self.place, self.field) == (matter(other), other.place, other.field)


def _with(refusal: Refusal, **changed: object) -> Refusal:
    made = Refusal(refusal.reason, refusal.id, refusal.field, **dict(refusal.fields))
    for name, value in {"place": refusal.place, **changed}.items():
        object.__setattr__(made, name, value)
    return made


class Refused(Exception):  # noqa: N818 - a verdict's word, not a malfunction
    """What was asked for is not allowed; the refusal names the field, the value and what would be accepted."""

    def __init__(self, reason: Reason, phrase: str, /, field: str = "", **fields: object) -> None:
        self.refusal = Refusal(reason, phrase, field, **fields)
        super().__init__(self.refusal)

    @classmethod
    def of(cls, refusal: Refusal) -> "Refused":
        """The exception that carries this refusal."""
        made = cls(refusal.reason, refusal.id)
        made.refusal, made.args = refusal, (refusal,)
        return made


class Unreadable(Exception):  # noqa: N818 - says nothing against the object
    """A fact of the cluster could not be read: the object is refused, unless the policy does without that fact."""


class Missing(Unreadable):
    """What was to be read does not exist; it may be made later."""


LONGEST_SHOWN = 63
"""Characters: as long as a label's value may be."""


def shown(value: object) -> str:
    """What somebody wrote, cut to a length that a sentence can repeat."""
    text = str(value)
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}…"


def first_of(names: Sequence[str], most: int) -> str:
    """So many names at the most, and how many more there are."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")
