"""Logging: one structured line for each event on standard error, with the libraries' lines in the same form.

A line of ours is an event and its fields, which logging takes as a mapping: `log.info("draining", {"seconds": 3})`.
No line has the content of an object: tracebacks are without local variables, which could be a body.
"""

import json
import logging
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Literal, TextIO

import msgspec

Format = Literal["json", "console"]
Level = Literal["debug", "info", "warning", "error"]

_OURS = ("webhook", "certs")


def set_up(level: Level = "info", form: Format = "json", out: TextIO | None = None) -> None:
    """Log from `level` up. Call it first; another call replaces the settings.

    Lines of libraries and Python warnings have the same form, but never a level below warning, because at debug level
    the Kubernetes client prints whole answers, Secrets among them.
    """
    number = logging.getLevelNamesMapping()[level.upper()]
    handler = logging.StreamHandler(out or sys.stderr)
    handler.setFormatter(_Json() if form == "json" else _Plain())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(max(number, logging.WARNING))
    for name in _OURS:
        logging.getLogger(name).setLevel(number)
    logging.captureWarnings(capture=True)


class _Json(logging.Formatter):
    """Formats a record as one line with a JSON object, for programs."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {**_fields(record), "event": record.getMessage()}
        if not _is_ours(record):
            line["logger"] = record.name
        line |= {"level": record.levelname.lower(), "time": _time(record)}
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return _printable(msgspec.json.encode(line, enc_hook=str).decode())


class _Plain(logging.Formatter):
    """Formats a record as time, level, event and fields, with a traceback below, for people."""

    def format(self, record: logging.LogRecord) -> str:
        shown = [f"{key}={_value(value)}" for key, value in sorted(_fields(record).items())]
        if not _is_ours(record):
            shown.insert(0, f"[{record.name}]")
        head = f"{_time(record)} [{record.levelname.lower():9}] {record.getMessage():30} {' '.join(shown)}".rstrip()
        below = [self.formatException(record.exc_info)] if record.exc_info else []
        return _printable("\n".join((head, *below)))


def _fields(record: logging.LogRecord) -> Mapping[str, object]:
    return record.args if isinstance(record.args, Mapping) else {}


def _is_ours(record: logging.LogRecord) -> bool:
    return record.name.partition(".")[0] in _OURS


def _time(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _value(value: object) -> str:
    return value if isinstance(value, str) and not {*value} & {*" \t\r\n=\"'"} else repr(value)


def _printable(line: str) -> str:
    """Escape control characters except line breaks: users can write them into labels, and a terminal obeys them."""
    if line.isprintable():
        return line
    return "".join(each if each.isprintable() or each == "\n" else json.dumps(each)[1:-1] for each in line)
