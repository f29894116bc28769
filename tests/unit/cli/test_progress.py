"""The line that says how far a slow command is."""

import io
import re
import time

import pytest
from rich.console import Console

from localcluster.waiting import wait_until
from webhook.cli.progress import Steps


def shown(after: float, *until: str, terminal: bool = True) -> str:
    """Return the output of a command with two steps, each of which lasts until one of these words or 0.1 s."""
    written = io.StringIO()
    first, second = until or ("", "")
    with Steps(Console(file=written, force_terminal=terminal, width=100), after) as steps:
        steps.begin("asking the webhook")
        _lasts(written, "asking" if until else "")
        steps.begin("reading pods")
        steps.done(500)
        _lasts(written, first)
        steps.begin("judging", 4)
        steps.done()
        _lasts(written, second)
    return written.getvalue()


def _lasts(written: io.StringIO, until: str) -> None:
    if until:
        wait_until(lambda: until in written.getvalue(), 60, until)
    else:
        time.sleep(0.1)


def test_a_slow_command_says_what_it_does_and_how_far_it_is() -> None:
    text = shown(0.01, "500", "1/4")
    assert re.search(r"asking the webhook 0:00:\d\d", text), "what has no steps shows no count"
    assert "reading pods 500 0:00:" in text
    assert "/?" not in text
    assert "reading pods" in text
    assert "judging" in text
    assert text.endswith("\x1b[2K"), "at the end the line is gone"


def test_a_quick_command_says_nothing() -> None:
    assert shown(after=60) == ""


def test_without_a_terminal_there_is_no_line() -> None:
    assert shown(after=0.01, terminal=False) == ""


def test_who_wants_no_colour_gets_no_cursor_codes_either(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    assert shown(after=0.01) == ""


def test_what_fails_leaves_no_line_behind() -> None:
    written = io.StringIO()
    try:
        with Steps(Console(file=written, force_terminal=True), 0.01) as steps:
            steps.begin("judging", 2)
            wait_until(lambda: "judging" in written.getvalue(), 60, "the line")
            raise ValueError("no")  # noqa: TRY301
    except ValueError:
        assert written.getvalue().endswith("\x1b[2K")
