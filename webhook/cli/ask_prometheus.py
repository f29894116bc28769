"""Asks a Prometheus for a command: one question, answered by numbers with their labels."""

import json
import math
import re
from collections.abc import Sequence
from typing import Annotated, Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode, urlsplit
from urllib.request import urlopen

import typer

from webhook.objects.refusal import shown

PrometheusOption = Annotated[
    str, typer.Option(envvar="GPU_TIERS_PROMETHEUS", help="Address of Prometheus, such as http://localhost:9090.")
]

TIMEOUT = 30.0
MOST_BYTES = 32 * 2**20
"""Of an answer: some 100,000 series."""


class NoAnswer(Exception):  # noqa: N818 - what is said of it
    """What was asked can't be answered; the text says why, and what to do."""


def require_since(since: str) -> None:
    """Raises NoAnswer where that is no time of Prometheus."""
    if not re.fullmatch(r"[1-9][0-9]{0,4}[mhdwy]", since):
        raise NoAnswer(f'--since: "{shown(since)}" is no time; write such as 12h, 30d or 4w')


def numbers(prometheus: str, query: str, labels: Sequence[str]) -> dict[tuple[str, ...], float]:
    """What a query answers, by the values of these labels. Raises NoAnswer."""
    result = _asked(prometheus, query)
    try:
        found = {
            tuple(str(each["metric"].get(name, "")) for name in labels): float(each["value"][1]) for each in result
        }
    except (AttributeError, KeyError, TypeError, ValueError, IndexError) as error:
        raise NoAnswer(_not_prometheus(prometheus)) from error
    return {key: value for key, value in found.items() if math.isfinite(value)}


def _asked(prometheus: str, query: str) -> list[Any]:
    """The vector that Prometheus answers. Raises NoAnswer."""
    if urlsplit(prometheus).scheme not in ("http", "https"):
        raise NoAnswer(f'--prometheus: "{shown(prometheus)}" is no address; write such as http://localhost:9090')
    address = f"{prometheus.rstrip('/')}/api/v1/query?{urlencode({'query': query})}"
    try:
        with urlopen(address, timeout=TIMEOUT) as response:  # noqa: S310 - http or https, as looked at above
            body = response.read(MOST_BYTES)
    except HTTPError as error:
        raise NoAnswer(_refused(prometheus, error)) from error
    except (URLError, OSError, ValueError) as error:
        cause = getattr(error, "reason", error)
        reason = cause.strerror if isinstance(cause, OSError) and cause.strerror else cause
        raise NoAnswer(f"can't ask Prometheus at {shown(prometheus)}: {reason}; check --prometheus") from error
    try:
        return list(json.loads(body)["data"]["result"])
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise NoAnswer(_not_prometheus(prometheus)) from error


def _refused(prometheus: str, error: HTTPError) -> str:
    with error:
        try:
            told = str(json.loads(error.read(MOST_BYTES))["error"])
        except (ValueError, KeyError, TypeError, OSError):
            told = str(error.reason)
    return f"Prometheus at {shown(prometheus)} answers {error.code}: {' '.join(told.split())}"


def _not_prometheus(prometheus: str) -> str:
    return f"what answers at {shown(prometheus)} is no Prometheus; check --prometheus"
