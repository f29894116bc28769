"""How the process logs: one structured line an event on standard error, the libraries' lines in the same form.

Nothing here ever prints an object's content: tracebacks come without local variables, where a body would stand.
"""

import json
import logging
import sys
from typing import Any, Literal, TextIO

import msgspec
import structlog
from structlog.typing import Processor

Format = Literal["json", "console"]
Level = Literal["debug", "info", "warning", "error"]


def set_up(level: Level = "info", form: Format = "json", out: TextIO | None = None) -> None:
    """Log from `level` up. Call it once, first of all; calling it again replaces what was set up."""
    stream = out or sys.stderr
    number = logging.getLevelNamesMapping()[level.upper()]
    structlog.configure(
        processors=[*_shared(), *_rendering(form)],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=structlog.WriteLoggerFactory(stream),
        cache_logger_on_first_use=False,
    )
    _route_libraries(number, form, stream)


def _shared() -> list[Processor]:
    return [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True, key="time"),
        structlog.processors.StackInfoRenderer(),
    ]


def _rendering(form: Format) -> list[Processor]:
    if form == "json":
        return [structlog.processors.format_exc_info, structlog.processors.JSONRenderer(_json), _printable]
    plain = structlog.dev.plain_traceback
    return [structlog.dev.ConsoleRenderer(colors=False, timestamp_key="time", exception_formatter=plain), _printable]


def _printable(_logger: object, _method: str, line: Any) -> str:
    """The line without control characters, which a terminal would obey: people write them into labels and names."""
    text = str(line)
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() or each == "\n" else json.dumps(each)[1:-1] for each in text)


def _json(line: dict[str, object], **_: object) -> str:
    return msgspec.json.encode(line, enc_hook=str).decode()


def _route_libraries(number: int, form: Format, stream: TextIO) -> None:
    """Send uvicorn's, asyncio's and warnings' lines the same way, never below a warning.

    At debug level the Kubernetes client prints whole answers, Secrets among them.
    """
    formatter = structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=[structlog.stdlib.add_logger_name, *_shared()],
        processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *_rendering(form)],
    )
    handler = logging.StreamHandler(stream)
    handler.setFormatter(formatter)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(max(number, logging.WARNING))
    logging.captureWarnings(capture=True)
