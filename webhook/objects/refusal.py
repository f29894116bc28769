"""The messages of gpu-tiers as values: the sentence's id, and its fields. `webhook/sentences` has the texts.

Code compares and reads values. A text is made when it leaves the process: on the wire, in an event, on a terminal, in a
log. A decision says no by a Refusal, whose sentence tells the person what to do. A fault of gpu-tiers is any other
exception: then failurePolicy decides.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum


@dataclass(frozen=True, slots=True, init=False)
class Phrase:
    """A sentence or a part of one. A field is a text, a number, a tuple of them, or another phrase."""

    id: str
    fields: tuple[tuple[str, object], ...]

    def __init__(self, phrase: str, /, **fields: object) -> None:
        object.__setattr__(self, "id", phrase)
        object.__setattr__(self, "fields", tuple(fields.items()))

    def get(self, name: str) -> object:
        """Return the field's value; None if there is no such field."""
        return next((value for field, value in self.fields if field == name), None)


class Aside(Phrase):
    """A part about circumstances, such as the tiers with room now. `matter` ignores it."""

    __slots__ = ()


class AdmissionWarning(Phrase):
    """A warning about an admitted object. A documented id is shown with it in brackets."""

    __slots__ = ()


def matter(phrase: Phrase) -> tuple[object, ...]:
    """Return what two phrases of the same matter share: everything but numbers and asides."""
    return phrase.id, *((name, _matter(value)) for name, value in phrase.fields)


def _matter(value: object) -> object:
    if isinstance(value, Aside | int | Decimal):
        return None
    if isinstance(value, Phrase):
        return matter(value)
    return tuple(map(_matter, value)) if isinstance(value, tuple) else value


class Reason(StrEnum):
    """The reason of a refusal, in one word for metrics. It is not the id: several ids share a reason."""

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
    TIER_ACCESS = "tier-access"


OBJECT = "object"
"""The field of a refusal that is about a whole object."""


@dataclass(frozen=True, slots=True, init=False)
class Refusal(Phrase):
    """A refusal: the reason, the field if it is about one, and the fields of its sentence.

    `field` is a path from the object's beginning. `place` is that object's place in a larger one, with a dot at its
    end.
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
        """Return the refusal with another reason."""
        return _with(self, reason=reason)

    def within(self, place: str) -> "Refusal":
        """Return the refusal of an object at a place in another one; "" for the object itself."""
        return _with(self, place=f"{place}.{self.place}") if place else self

    def of_template(self, path: str, *, bare: bool) -> "Refusal":
        """Return the refusal of the pod that a template makes. The paths of a `bare` template begin in a pod spec."""
        if self.field == OBJECT and not self.place:
            return _with(self, field=path or OBJECT)
        field = self.field.removeprefix("spec.") if bare and not self.place else self.field
        return _with(self, field=field).within(path)

    def same_elsewhere(self, other: "Refusal") -> bool:
        """Tell whether both say the same, perhaps at another place."""
        return (self.id, self.fields) == (other.id, other.fields)

    def same_mistake(self, other: "Refusal") -> bool:
        """Tell whether both are about the same, whatever the numbers, because a number may be reduced in steps."""
        return (matter(self), self.place, self.field) == (matter(other), other.place, other.field)


def _with(refusal: Refusal, **changed: object) -> Refusal:
    made = Refusal(refusal.reason, refusal.id, refusal.field, **dict(refusal.fields))
    for name, value in {"place": refusal.place, **changed}.items():
        object.__setattr__(made, name, value)
    return made


class Refused(Exception):  # noqa: N818 - a verdict's word, not a malfunction
    """A request that is not allowed. The refusal names the field, the value and what would be accepted."""

    def __init__(self, reason: Reason, phrase: str, /, field: str = "", **fields: object) -> None:
        self.refusal = Refusal(reason, phrase, field, **fields)
        super().__init__(self.refusal)

    @classmethod
    def of(cls, refusal: Refusal) -> "Refused":
        """Return the exception with this refusal."""
        made = cls(refusal.reason, refusal.id)
        made.refusal, made.args = refusal, (refusal,)
        return made


class Unreadable(Exception):  # noqa: N818 - says nothing against the object
    """A fact of the cluster could not be read. The object is refused, unless the policy does without that fact."""


class Missing(Unreadable):
    """The object to read does not exist; it may be created later."""


LONGEST_SHOWN = 63
"""Characters of a shown value: as many as a label's value may have."""


def shown(value: object) -> str:
    """Return a person's text, cut to a length that a sentence can repeat."""
    text = str(value)
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}…"


def cut(text: str, most: int) -> str:
    """Return a text of at most so many characters. It ends between two words, unless a long one is at its end."""
    if len(text) <= most:
        return text
    begin = text[: most - 1]
    between = most if text[len(begin)] == " " else begin.rfind(" ")
    return f"{(begin[:between] if 2 * between > most else begin).rstrip()}…"


def first_of(names: Sequence[str], most: int) -> str:
    """Return at most so many names, and how many more there are."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")
