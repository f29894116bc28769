"""The report of a history: its events, and the broken expectations of an honest user."""

from dataclasses import dataclass, field

from tests.honest.clocks import START
from tests.ledger.virtual_time import loop

NOTED_SECONDS = 70.0
"""So long after a foreground or an orphaning delete a failure says so: both have documented limits."""


@dataclass(frozen=True)
class Failure:
    """A broken rule of the oracle. `subject`: what it was broken for, by mode and kind; `at`: the second."""

    rule: str
    subject: str
    at: float = 0.0
    details: dict[str, str] = field(default_factory=dict)

    @property
    def signature(self) -> str:
        return f"{self.rule} | {self.subject}"


class Report:
    """`lines` is the story for people."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.failures: list[Failure] = []
        self.foreground_at = self.orphaned_at = float("-inf")

    def say(self, text: str) -> None:
        self.lines.append(f"{loop().time() - START:8.2f} {text}")

    def fail(self, rule: str, subject: str, **details: object) -> None:
        now = loop().time()
        if now < self.foreground_at + NOTED_SECONDS:
            subject += " [after a foreground delete]"
        if now < self.orphaned_at + NOTED_SECONDS:
            subject += " [after an orphaning delete]"
        shown = {key: str(value) for key, value in details.items()}
        self.failures.append(Failure(rule, subject, round(now - START, 1), shown))
        self.say(f"!!! {rule}: {subject} {shown}")
