"""Says on a terminal how far a command is that takes longer than a second."""

import sys
import threading
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

AFTER_SECONDS = 1.0


class Steps:
    """A line on stderr with a bar, which appears after a second and goes away at the end; silent without a terminal.

    What is done at the moment is named with `begin`, and counted with `done`.
    """

    def __init__(self, console: Console | None = None, after: float = AFTER_SECONDS) -> None:
        self._console = console or Console(file=sys.stderr)
        self._bar = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(bar_width=20),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=self._console,
            transient=True,
            disable=not self._console.is_terminal,
        )
        self._timer = threading.Timer(after, self._bar.start)
        self._timer.daemon = True
        self._task = self._bar.add_task("", total=None)

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._timer.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._timer.cancel()
        if self._timer.is_alive():
            self._timer.join()
        self._bar.stop()

    def begin(self, what: str, total: int | None = None) -> None:
        """Another part begins, of so many steps where that is known."""
        self._bar.reset(self._task, description=what, total=total, start=True)
        self._bar.update(self._task, total=total)

    def done(self, count: int = 1) -> None:
        """So many steps of the part are done."""
        self._bar.advance(self._task, count)
