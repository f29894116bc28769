"""The outcome of a run: a line for a log, and a story for the reader who looks for the cause."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .books import Book
from .plan import Wish

FEW = 10


@dataclass(frozen=True)
class Outcome:
    """`settled_after`: seconds from the last fault or error until all that fits was in, or they gave up."""

    name: str
    answers: Mapping[str, int]
    errors: Mapping[str, int]
    settled_after: float
    left_out: Sequence[Wish]
    differences: Sequence[str]
    faults: Sequence[str]
    books: Sequence[Book]

    @property
    def over_admitted(self) -> int:
        """The most GPUs that a tenant ever used beyond its quota."""
        return max(book.over_admitted for book in self.books)

    @property
    def uncharged(self) -> int:
        """The most GPUs that a tenant ever used beyond its status."""
        return max(book.uncharged for book in self.books)

    @property
    def is_good(self) -> bool:
        """Return whether nobody used too much, nobody was left out, and the statuses are true."""
        return not (self.over_admitted or self.uncharged or self.left_out or self.differences)

    def __str__(self) -> str:
        counts = ", ".join(f"{what} {number}" for what, number in sorted(self.answers.items()))
        found = f"over-admitted {self.over_admitted}, uncharged {self.uncharged}, left out {len(self.left_out)}"
        return f"{self.name}: {counts}; {found}; settled in {self.settled_after:.1f} s"

    def story(self) -> str:
        """The faults, the errors, who was left out, and the history of a tenant with which something is wrong."""
        errors = [f"{number} x {what}" for what, number in self.errors.items()]
        left_out = [f"{wish} would fit" for wish in self.left_out[:FEW]]
        return "\n".join([str(self), *self.faults, *errors, *left_out, *self.differences, *self._concerned().story()])

    def _concerned(self) -> Book:
        """The tenant that was overdrawn most, else one of whose people somebody was left out."""
        waiting = {wish.namespace for wish in self.left_out}
        return max(
            self.books, key=lambda book: (book.over_admitted, book.uncharged, bool(waiting & {*book.team.namespaces}))
        )
