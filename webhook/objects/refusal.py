"""The one way a decision says no: a person's mistake, told in a sentence that person can act on.

Our own faults are never a Refused: they surface as any other exception, and failurePolicy decides.
"""


class Refused(Exception):  # noqa: N818 - a verdict's word, not a malfunction
    """What was asked for may not be had; the text names the field, the value and what would be accepted."""

    @property
    def sentence(self) -> str:
        """The text, on one line, as kubectl shows it."""
        return " ".join(str(self).split())


class Unreadable(Exception):  # noqa: N818 - the third state: neither allowed nor denied
    """A fact of the cluster could not be read; the policy decides what that means."""


LONGEST_SHOWN = 63
"""Characters: as long as a label's value may be."""


def shown(value: object) -> str:
    """What somebody wrote, as a sentence repeats it: never a page of it."""
    text = str(value)
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}…"
