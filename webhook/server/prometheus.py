"""Asks a Prometheus for the page's chart: what each tier held in the last day, and how many of its pods were evicted.

It is asked when somebody looks at the page, at most once a minute, and never by a review.
"""

import asyncio
import math
import time
from collections import defaultdict
from collections.abc import Callable

import msgspec

from webhook.kube.errors import ApiError
from webhook.kube.ttl_cache import TTLCache
from webhook.kube.wire import ApiRequest
from webhook.report.gpus_now import DAY, DayOfUse, Evicted, UseAt
from webhook.server.metric_table import CHECKPOINTS, GPU_SECONDS
from webhook.server.settings import PrometheusServer

STEP = 600
"""Seconds from one point to the next; each tells of the time since the last, so that nothing between is missed."""
KEPT, IN_TIME = 60.0, 2.0
"""Seconds for which an answer is good, also a bad one, and for which the page waits for one."""
PATH = "/api/v1/query_range"


def held_by_tier(matchers: str, window: str) -> str:
    """GPUs that pods held on average. One replica counts at a time, so the sum over all counts nothing twice."""
    return f"sum by (tier) (rate({GPU_SECONDS.name}{matchers}[{window}]))"


def evicted_by_tier(matchers: str, window: str) -> str:
    """Pods that were preempted: each has one outcome, and this counter begins at 0, so its first increase is seen."""
    return f"sum by (tier) (increase({CHECKPOINTS.name}{matchers}[{window}]))"


class _Series(msgspec.Struct):
    metric: dict[str, str]
    values: list[tuple[float, str]]


class _Matrix(msgspec.Struct):
    result: list[_Series]


class _Answer(msgspec.Struct):
    """https://prometheus.io/docs/prometheus/latest/querying/api/#range-queries"""

    data: _Matrix


_Points = dict[tuple[float, str], float]
"""By time and tier."""


class AskedPrometheus:
    """`day` is the last day as that Prometheus knows it."""

    def __init__(self, server: PrometheusServer, clock: Callable[[], float] = time.time) -> None:
        self.name = server.name
        self._server = server
        self._clock = clock
        self._kept: TTLCache[str, DayOfUse] = TTLCache(KEPT, 1)

    async def day(self) -> DayOfUse:
        """With a problem where there is no answer that can be drawn; never raises."""
        return await self._kept.get("", self._asked)

    async def _asked(self) -> DayOfUse:
        try:
            async with asyncio.timeout(IN_TIME):
                return await self._answered()
        except TimeoutError:
            return DayOfUse(problem=f"no answer within {IN_TIME:.0f} s")
        except msgspec.DecodeError:
            return DayOfUse(problem=f"what answers {PATH} is no Prometheus")
        except (ApiError, OSError, ValueError) as error:  # a file that can't be read, an address that is none
            return DayOfUse(problem=str(error))

    async def _answered(self) -> DayOfUse:
        from webhook.kube.connection import elsewhere  # noqa: PLC0415 - its libraries are large

        server = self._server
        # Reading all CAs of the system takes tens of milliseconds, for which no review should wait.
        way = await asyncio.to_thread(elsewhere, server.url, server.token_file, server.ca_file)
        end = self._clock()
        params = {"start": f"{end - DAY + STEP:.3f}", "end": f"{end:.3f}", "step": str(STEP)}
        try:
            queries = [each(server.matchers, f"{STEP}s") for each in (held_by_tier, evicted_by_tier)]
            asked = [ApiRequest("GET", PATH, params | {"query": query}) for query in queries]
            held, evicted = [_points(await way.send(each, IN_TIME)) for each in asked]
        finally:
            await way.close()
        return _day(held, evicted) if held or evicted else DayOfUse(problem=f"no metric of gpu-tiers{server.matchers}")


def _points(answer: bytes) -> _Points:
    """Raises msgspec.DecodeError or ValueError."""
    series = msgspec.json.decode(answer, type=_Answer).data.result
    found = {(at, each.metric.get("tier", "")): float(value) for each in series for at, value in each.values}
    return {key: value for key, value in found.items() if math.isfinite(value)}


def _day(held: _Points, evicted: _Points) -> DayOfUse:
    """Every replica shows all outcomes from its start, so a time that has none is one that nobody knows of: a gap."""
    seen: defaultdict[float, dict[str, float]] = defaultdict(dict)
    for at, _ in evicted:
        seen[at] = {}
    for (at, tier), gpus in held.items():
        seen[at][tier] = gpus
    events = tuple(Evicted(at, tier, pods) for (at, tier), pods in sorted(evicted.items()) if pods > 0)
    return DayOfUse(tuple(UseAt(at, seen[at]) for at in sorted(seen)), events)
