"""Serves the page of this process: its ports, its readers, and the sources of its data.

The last day comes from a Prometheus, if one is configured: the GPUs of each tier, and how many of its pods were
evicted. It is queried when the page is read, at most once a minute, and never by a review.
"""

import asyncio
import math
import socket
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from certs.configurations import WebhookConfigurations
from webhook.cluster.listed import dra_objects, gpu_nodes, plugins_by_node, supply_of
from webhook.cluster.live import LiveCluster
from webhook.cluster.scheduling_view import node_reservations
from webhook.cluster.watched import Watched
from webhook.cluster.webhook_configurations import KINDS, WebhookConfiguration, without
from webhook.config.active_policy import ActivePolicy
from webhook.controllers.gpu_seconds import counted_once
from webhook.kube.client import ApiRequest
from webhook.kube.errors import ApiError
from webhook.kube.ttl_cache import TTLCache
from webhook.objects.refusal import Refused
from webhook.objects.view import view
from webhook.page.routes import Choice, Content, PageContent
from webhook.policy.devices import ResourceSlice
from webhook.policy.values.gpu_supply import NO_SUPPLY, GpuSupply
from webhook.report.gpus_now import DAY, DayOfUse, Evicted, GpusNow, UseAt, gpus_now
from webhook.report.lint.installation import failure_policy_differs
from webhook.report.lint.snapshot import ClusterSnapshot
from webhook.report.posture import Posture, posture_of, reservations_shown
from webhook.report.tenants import tenant_shown
from webhook.server.background import BackgroundWork
from webhook.server.listener import listen
from webhook.server.run import Check
from webhook.server.running_ledger import RunningLedger
from webhook.server.settings import PrometheusServer, Settings

LOOPBACK = "127.0.0.1"


def page_sockets(settings: Settings) -> list[tuple[socket.socket, bool]]:
    """Open the ports of the page that the settings name; True is the port for readers with a token.

    The other port is on loopback, for kubectl port-forward. Raises OSError.
    """
    ports = (LOOPBACK, settings.page_port, False), (settings.host, settings.page_tls_port, True)
    return [(listen(host, port), guarded) for host, port, guarded in ports if port is not None]


NODES_SECONDS, NODES_IN_TIME = 30.0, 2.0
"""Seconds for which a list of nodes, of their GPUs or of reservations is cached, and seconds that the page waits."""


T = TypeVar("T")


def _listed(ask: Callable[[], Awaitable[T]]) -> Callable[[], Awaitable[T | None]]:
    """Return a function that returns what `ask` lists, from a cache; None if it can't be read in time.

    It lists when the page is read, because a watch would cost more for a rarely read page.
    """
    cache: TTLCache[str, T] = TTLCache(NODES_SECONDS, 1)

    async def now() -> T | None:
        """Return the list, cached for NODES_SECONDS; None if it can't be read, or not in time."""
        try:
            async with asyncio.timeout(NODES_IN_TIME):
                return await cache.get("", ask)
        except (ApiError, Refused, TimeoutError):
            return None

    return now


def page_content(
    settings: Settings,
    cluster: LiveCluster,
    active: ActivePolicy,
    ledger: RunningLedger,
    background: BackgroundWork,
    health: Callable[[], Mapping[str, str]],
) -> Content:
    """Return the function that gathers the content of the page, at each request."""
    client, known = cluster.client, cluster.known

    async def supplied() -> GpuSupply:
        plugins, slices = await plugins_by_node(client), await dra_objects(client, ResourceSlice)
        return supply_of(plugins, slices, known.device_classes.cluster_version)

    nodes, supply = _listed(lambda: gpu_nodes(client, active.current())), _listed(supplied)
    reserved = _listed(lambda: node_reservations(client))
    prometheus = AskedPrometheus(settings.prometheus) if settings.prometheus else None

    async def gpus() -> GpusNow | None:
        if not ledger.knows_pods():
            return None
        found, tiers = await nodes(), [tier.name for tier in active.current().tiers]
        return gpus_now(tiers, counted_once(ledger.pods.running()), ledger.pods.waiting(), found, known.tenant_name)

    async def posture() -> Posture:
        policy = active.current()
        there, taken = (await supply(), await reserved()) if policy.classes else (None, None)
        found = posture_of(policy, classes=known.classes(), supply=there or NO_SUPPLY)
        return replace(found, reserved=reservations_shown(taken or ()))

    async def day() -> DayOfUse | None:
        return await prometheus.day() if prometheus else None

    async def content(choice: Choice) -> PageContent:
        leader = ledger.leader()
        gpus_seen, day_seen, posture_seen = await asyncio.gather(gpus(), day(), posture())
        quotas, flavors = sorted(known.tenant_quotas(), key=lambda found: found.name), active.current().flavors
        # Outside a cluster a replica is no pod, and has no command that reaches its page.
        reached = leader and settings.page_port is not None and not settings.kubeconfig
        return PageContent(
            settings.replica,
            ledger.leading(),
            leader,
            f"kubectl -n {settings.namespace} port-forward pod/{leader} {settings.page_port}" if reached else "",
            health(),
            gpus_seen,
            posture_seen,
            [tenant_shown(each, flavors) for each in quotas],
            background.verdicts,
            background.preemptions,
            background.use,
            prometheus.name if prometheus else "",
            day_seen,
            choice,
            background.at_risk.gpu_seconds(),
        )

    return content


NO_LEADER = "no replica leads, so ended pods still fill quotas, and no queued pod starts"


def health_of(
    checks: Mapping[str, Check],
    cluster: Watched,
    configurations: WebhookConfigurations,
    active: ActivePolicy,
    leader: Callable[[], str],
) -> Mapping[str, str]:
    """Return the problem of each check of /readyz, and of the other parts that a replica knows; "" for none."""
    found = {name: check() or "" for name, check in checks.items()}
    gone = {kind for kind, each in configurations.seen.items() if not each.registered}
    unasked = without([kind for kind in KINDS if f"{kind.lower()}s" in gone])
    not_taken = "the file was not taken, the last good policy stays active"
    problem, standing = active.problem, "active, but not as it should be" if active.taken else not_taken
    unregistered = [f"{kind} missing or without a path: {lacks}" for kind, lacks in unasked]
    return found | {
        "policy": f"{standing}: {problem}" if problem else "",
        "watches": "; ".join(cluster.problems()),
        "webhook configurations": "; ".join([*unregistered, *_other_failure_policies(configurations, active)]),
        "leader": "" if leader() else NO_LEADER,
    }


def _other_failure_policies(configurations: WebhookConfigurations, active: ActivePolicy) -> list[str]:
    """Return what lint says of the configurations' failurePolicy, such as in a break-glass that was not ended."""
    seen = (each.configuration for each in configurations.seen.values())
    there = tuple(view(each, WebhookConfiguration) for each in seen if each is not None)
    found = failure_policy_differs.check(ClusterSnapshot(active.current(), datetime.now(UTC), configurations=there))
    return [each.what for each in found]


STEP = 600
"""Seconds from one point to the next. Each point covers the time since the last one, so that nothing is missed."""
ANSWER_SECONDS, IN_TIME = 60.0, 2.0
"""Seconds for which an answer is cached, also a failure, and seconds that the page waits for an answer."""
QUERY_PATH = "/api/v1/query_range"


def used_by_tier(matchers: str, window: str) -> str:
    """Return the query for the average GPUs in use by tier. Only the leader counts, so the sum counts nothing twice."""
    return f"sum by (tier) (rate(gpu_tiers_gpu_seconds_total{matchers}[{window}]))"


def evicted_by_tier(matchers: str, window: str) -> str:
    """Return the query for preempted pods by tier. A pod has one outcome, and counters begin at 0: none is missed."""
    return f"sum by (tier) (increase(gpu_tiers_checkpoints_total{matchers}[{window}]))"


class _Series(msgspec.Struct):
    metric: dict[str, str]
    values: list[tuple[float, str]]


class _Matrix(msgspec.Struct):
    result: list[_Series]


class _Answer(msgspec.Struct):
    """https://prometheus.io/docs/prometheus/latest/querying/api/#range-queries"""

    data: _Matrix


class AskedPrometheus:
    """Queries a Prometheus for the last day, and caches the answer."""

    def __init__(self, server: PrometheusServer, clock: Callable[[], float] = time.time) -> None:
        self.name = server.name
        self._server = server
        self._clock = clock
        self._cache: TTLCache[str, DayOfUse] = TTLCache(ANSWER_SECONDS, 1)

    async def day(self) -> DayOfUse:
        """Return the last day; without a usable answer in time, an empty one with the problem. It never raises."""
        return await self._cache.get("", self._asked)

    async def _asked(self) -> DayOfUse:
        try:
            async with asyncio.timeout(IN_TIME):
                return await self._answered()
        except TimeoutError:
            return DayOfUse(problem=f"no answer within {IN_TIME:.0f} s")
        except msgspec.DecodeError:
            return DayOfUse(problem=f"what answers {QUERY_PATH} is no Prometheus")
        except (ApiError, OSError, ValueError) as error:  # an unreadable file, an invalid address
            return DayOfUse(problem=str(error))

    async def _answered(self) -> DayOfUse:
        from webhook.kube.connection import elsewhere  # noqa: PLC0415 - its libraries are large

        server = self._server
        # Reading all CAs of the system takes tens of milliseconds, for which no review should wait.
        connection = await asyncio.to_thread(elsewhere, server.url, server.token_file, server.ca_file)
        end = self._clock()
        params = {"start": f"{end - DAY + STEP:.3f}", "end": f"{end:.3f}", "step": str(STEP)}
        try:
            queries = [each(server.matchers, f"{STEP}s") for each in (used_by_tier, evicted_by_tier)]
            asked = [ApiRequest("GET", QUERY_PATH, params | {"query": query}) for query in queries]
            used, evicted = [_by_time_and_tier(await connection.send(each, IN_TIME)) for each in asked]
        finally:
            await connection.close()
        if not used and not evicted:
            return DayOfUse(problem=f"no metric of gpu-tiers{server.matchers}")

        # Every replica shows all outcomes from its start, so a time without any is a gap.
        seen: defaultdict[float, dict[str, float]] = defaultdict(dict, {at: {} for at, _ in evicted})
        for (at, tier), gpus in used.items():
            seen[at][tier] = gpus
        events = tuple(Evicted(at, tier, pods) for (at, tier), pods in sorted(evicted.items()) if pods > 0)
        return DayOfUse(tuple(UseAt(at, seen[at]) for at in sorted(seen)), events)


def _by_time_and_tier(answer: bytes) -> dict[tuple[float, str], float]:
    """Return the finite values of an answer by Unix time and tier. Raises msgspec.DecodeError or ValueError."""
    series = msgspec.json.decode(answer, type=_Answer).data.result
    found = {(at, each.metric.get("tier", "")): float(value) for each in series for at, value in each.values}
    return {key: value for key, value in found.items() if math.isfinite(value)}
