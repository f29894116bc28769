"""The line that says how far a slow command is."""

import io
import time

from rich.console import Console

from webhook.cli.progress import Steps


def shown(after: float, *, terminal: bool = True) -> str:
    """What a command writes that takes a fifth of a second."""
    written = io.StringIO()
    with Steps(Console(file=written, force_terminal=terminal, width=100), after) as steps:
        steps.begin("reading pods")
        steps.done(500)
        time.sleep(0.2)
        steps.begin("judging", 4)
        steps.done()
        time.sleep(0.2)
    return written.getvalue()


def test_a_slow_command_says_what_it_does_and_how_far_it_is() -> None:
    text = shown(after=0.01)
    assert "reading pods" in text
    assert "500/?" in text
    assert "judging" in text
    assert "1/4" in text
    assert text.endswith("\x1b[2K"), "at the end the line is gone"


def test_a_quick_command_says_nothing() -> None:
    assert shown(after=60) == ""


def test_without_a_terminal_there_is_no_line() -> None:
    assert shown(after=0.01, terminal=False) == ""


def test_what_fails_leaves_no_line_behind() -> None:
    written = io.StringIO()
    try:
        with Steps(Console(file=written, force_terminal=True), 0.01) as steps:
            steps.begin("judging", 2)
            time.sleep(0.1)
            raise ValueError("no")  # noqa: TRY301
    except ValueError:
        assert written.getvalue().endswith("\x1b[2K")
