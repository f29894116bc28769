"""GPU-hours of tenants over some time, as Prometheus has them of `gpu_tiers_gpu_seconds_total`."""

import json
import re
from collections.abc import Collection, Sequence
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode, urlsplit
from urllib.request import urlopen

from webhook.cli.output import Answer, Table
from webhook.objects.refusal import shown
from webhook.readmodel.shown import Shown
from webhook.server.metric_table import GPU_SECONDS

TIMEOUT = 30.0
MOST_BYTES = 32 * 2**20
"""Of an answer: some 100,000 series."""


class NoAnswer(Exception):  # noqa: N818 - what is said of it
    """What was asked can't be answered; the text says why, and what to do."""


class GpuHours(Shown, frozen=True):
    """What a tenant's pods held on nodes; a flavor is empty where the policy has none."""

    tenant: str
    tier: str
    flavor: str
    gpu_hours: float


def gpu_hours(prometheus: str, since: str) -> list[GpuHours]:
    """GPU-hours by tenant, tier and flavor, the most first within a tenant. Raises NoAnswer."""
    if not re.fullmatch(r"[1-9][0-9]{0,4}[mhdwy]", since):
        raise NoAnswer(f'--since: "{shown(since)}" is no time; write such as 12h, 30d or 4w')
    increase = f"increase({GPU_SECONDS.name}[{since}])"
    result = _asked(prometheus, f"sum by ({', '.join(GPU_SECONDS.labels)}) ({increase}) / 3600")
    try:
        found = [_row(each["metric"], each["value"]) for each in result]
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise NoAnswer(_not_prometheus(prometheus)) from error
    return sorted((each for each in found if each.gpu_hours), key=lambda each: (each.tenant, -each.gpu_hours))


def gpu_hours_answer(found: Sequence[GpuHours], since: str, names: Collection[str]) -> Answer:
    """What people read of it."""
    wanted = [each for each in found if not names or each.tenant in names]
    rows = [(each.tenant or "-", each.tier or "-", each.flavor or "-", f"{each.gpu_hours:.1f}") for each in wanted]
    total = f"{sum(each.gpu_hours for each in wanted):.1f} GPU-hours in {since}."
    nothing = f"Prometheus has no GPU-hours in {since}. Is gpu-tiers scraped, and does Prometheus keep {since}?"
    table = Table(("Tenant", "Tier", "Flavor", "GPU-hours"), rows)
    return Answer(wanted, (table,) if rows else (), (total if rows else nothing,))


def _row(labels: Any, value: Any) -> GpuHours:
    tenant, tier, flavor = (str(labels.get(name, "")) for name in GPU_SECONDS.labels)
    return GpuHours(tenant, tier, flavor, round(float(value[1]), 3))


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
