"""The log: one JSON object a line, the libraries' lines among them, and never an object's content."""

import io
import json
import logging
import warnings

import pytest

from webhook.server.logs import set_up

pytestmark = pytest.mark.usefixtures("as_before")


def logged(out: io.StringIO) -> list[dict[str, object]]:
    return [json.loads(line) for line in out.getvalue().splitlines()]


def crash(body: str) -> None:
    raise ValueError(len(body))


def test_a_line_is_one_json_object_with_time_and_level() -> None:
    out = io.StringIO()
    set_up("info", "json", out)
    logging.getLogger("webhook").info("refused", {"tenant": "alpha", "reason": "a\nb", "odd": {1, 2}.__class__})

    (line,) = logged(out)
    assert line.pop("time")
    assert line == {"event": "refused", "level": "info", "tenant": "alpha", "reason": "a\nb", "odd": "<class 'set'>"}


def test_what_lies_below_the_level_is_left_out() -> None:
    out = io.StringIO()
    set_up("warning", "json", out)
    log = logging.getLogger("webhook")
    log.info("no")
    log.warning("yes")

    assert [line["event"] for line in logged(out)] == ["yes"]


@pytest.mark.parametrize("name", ["uvicorn.error", "asyncio", "kubernetes.aio.client"])
def test_the_libraries_log_the_same_way(name: str) -> None:
    out = io.StringIO()
    set_up("info", "json", out)
    logging.getLogger(name).warning("Invalid HTTP request %s", "received.")

    (line,) = logged(out)
    assert line.items() >= {"event": "Invalid HTTP request received.", "level": "warning", "logger": name}.items()


def test_the_kubernetes_clients_answers_are_not_logged_even_at_debug_level() -> None:
    out = io.StringIO()
    set_up("debug", "json", out)
    logging.getLogger("kubernetes.aio.client.rest").debug("response body: %s", "a Secret")

    assert out.getvalue() == ""


def test_a_warning_of_python_is_a_line_too() -> None:
    out = io.StringIO()
    set_up("info", "json", out)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        logging.captureWarnings(capture=True)
        warnings.warn("soon gone", DeprecationWarning, stacklevel=1)

    (line,) = logged(out)
    assert "DeprecationWarning: soon gone" in str(line["event"])


@pytest.mark.parametrize("form", ["json", "console"])
def test_a_traceback_shows_no_variables(form: str) -> None:
    out = io.StringIO()
    set_up("info", form, out)  # type: ignore[arg-type]
    body = "hunter2-in-a-body"
    try:
        crash(body)
    except ValueError:
        logging.getLogger("webhook").exception("review failed", {"uid": "42"})
        logging.getLogger("asyncio").exception("task failed")

    assert "ValueError: 17" in out.getvalue()
    assert "hunter2" not in out.getvalue()


def test_a_person_reads_plain_lines() -> None:
    out = io.StringIO()
    set_up("info", "console", out)
    logging.getLogger("webhook").info("serving", {"port": 9443})

    assert "serving" in out.getvalue()
    assert "port=9443" in out.getvalue()


@pytest.mark.parametrize("form", ["json", "console"])
def test_no_control_character_gets_through(form: str) -> None:
    """From an annotation, a name, a library or an error: a terminal would obey it, and stores stumble over NUL."""
    out, bad = io.StringIO(), "a\0b\x1b[2J\x7f\x9b\u202e\U000e0001\r"
    set_up("info", form, out)  # type: ignore[arg-type]
    logging.getLogger("webhook").info("refused", {"reason": bad, "tenant": bad.strip()})
    logging.getLogger("asyncio").warning("odd %s", bad)
    logging.getLogger("webhook").error("review failed", exc_info=ValueError(bad))

    text = out.getvalue()
    assert text.replace("\n", "").isprintable()
    assert "a\\u0000b\\u001b[2J\\u007f\\u009b\\u202e\\udb40\\udc01" in text
    if form == "json":
        assert logged(out)[0]["reason"] == bad
