"""Shows on a terminal the progress of a command that takes longer than a second."""

import os
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Self, TypeVar

if TYPE_CHECKING:  # most commands end before a line is needed
    from rich.console import Console
    from rich.live import Live

T = TypeVar("T")

AFTER_SECONDS = 1.0


class Steps:
    """A progress line on stderr, which appears after a second and disappears at the end.

    Without a terminal, or with NO_COLOR, it prints nothing, because a moving line needs escape codes. `begin` names the
    current part, and `done` counts its steps.
    """

    def __init__(self, console: "Console | None" = None, after: float = AFTER_SECONDS) -> None:
        self._console = console
        self._speaks = not os.environ.get("NO_COLOR") and (console.is_terminal if console else sys.stderr.isatty())
        self._began = time.monotonic()
        self._what, self._count, self._total = "", 0, 0
        self._live: Live | None = None
        self._timer = threading.Timer(after, self._show)
        self._timer.daemon = True

    def __enter__(self) -> Self:
        if self._speaks:
            self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
        if self._timer.is_alive():
            self._timer.join()
        if self._live is not None:
            self._live.stop()

    def begin(self, what: str, total: int = 0) -> None:
        """Begin the next part. `total` is the number of its steps, 0 if unknown."""
        self._what, self._count, self._total = what, 0, total

    def done(self, count: int = 1) -> None:
        self._count += count

    def _show(self) -> None:
        from rich.console import Console  # noqa: PLC0415 - see above
        from rich.live import Live  # noqa: PLC0415
        from rich.spinner import Spinner  # noqa: PLC0415

        spinner, console = Spinner("dots"), self._console or Console(file=sys.stderr)

        def line() -> Spinner:
            of_all = f"{self._count}/{self._total}" if self._total else str(self._count or "")
            seconds = timedelta(seconds=round(time.monotonic() - self._began))
            spinner.update(text=" ".join(filter(None, (self._what, of_all, str(seconds)))))
            return spinner

        self._live = Live(console=console, get_renderable=line, transient=True, refresh_per_second=10)
        self._live.start()


def shown_while(what: str, items: Sequence[T]) -> Iterator[T]:
    """Yield the items, and show how many the caller has finished."""
    with Steps() as steps:
        steps.begin(what, len(items))
        for each in items:
            yield each
            steps.done()
