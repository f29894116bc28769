"""How a decision says no: by a person's mistake, in a sentence that the person can act on.

A fault of gpu-tiers is any other exception: then failurePolicy decides.
"""

from collections.abc import Sequence
from enum import StrEnum


class Reason(StrEnum):
    """Why something is refused, in one word for metrics."""

    INVALID = "invalid-field"
    UNKNOWN_TIER = "unknown-tier"
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


class Refused(Exception):  # noqa: N818 - a verdict's word, not a malfunction
    """What was asked for is not allowed; the text names the field, the value and what would be accepted."""

    def __init__(self, text: str, reason: Reason = Reason.INVALID) -> None:
        super().__init__(text)
        self.reason = reason

    @property
    def sentence(self) -> str:
        """The text, on one line, as kubectl shows it."""
        return " ".join(str(self).split())


class Unreadable(Exception):  # noqa: N818 - the third state: neither allowed nor denied
    """A fact of the cluster could not be read; the policy decides what that means."""


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
