"""The fixtures of all unit tests."""

import logging
from collections.abc import Iterator, Mapping

import pytest


class LogLines(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.lines: list[dict[str, object]] = []

    def emit(self, record: logging.LogRecord) -> None:
        fields = record.args if isinstance(record.args, Mapping) else {}
        raised = {"exc_info": record.exc_info[1]} if record.exc_info else {}
        self.lines.append({**fields, **raised, "event": record.getMessage(), "log_level": record.levelname.lower()})


@pytest.fixture
def lines() -> Iterator[list[dict[str, object]]]:
    """Yield the log of our code, one mapping a line."""
    handler, ours = LogLines(), [logging.getLogger(name) for name in ("webhook", "certs")]
    levels = [each.level for each in ours]
    for each in ours:
        each.addHandler(handler)
        each.setLevel(logging.DEBUG)
    yield handler.lines
    for each, level in zip(ours, levels, strict=True):
        each.removeHandler(handler)
        each.setLevel(level)
