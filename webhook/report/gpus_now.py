"""The cluster's GPUs at one moment (what each tier uses, what is free, who waits for what) and during the last day.

The day is as this process or a Prometheus has observed it. `read_risks` reads the work at risk: the loss if all
training pods were evicted now.
"""

import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal

import msgspec

from webhook.cluster.listed import GpuNode, listed_namespaces, no_claims, pods_with_json, tenant_quotas
from webhook.kube.client import Client
from webhook.ledger.protocol import Holding
from webhook.policy.checkpoint.work_lost import Work, summed, work_since
from webhook.policy.values.tenants import by_age, tenant_among
from webhook.policy.values.tier_policy import TierPolicy
from webhook.report.shown import Gpus, Shown, as_number

RisksOf = Mapping[tuple[str, str, bool], float]
"""GPU-seconds by tenant, tier, and whether they are exact."""


class TierAtRisk(Shown, frozen=True):
    """The work at risk in a tier. `tier` is "" for pods without one."""

    tier: str
    work: Work


class TenantAtRisk(Shown, frozen=True):
    """The work at risk of a tenant in a tier, both "" for none.

    `max_at_risk` are the seconds of unsaved work after which pods of the tier are asked to save; None for no bound.
    """

    tenant: str
    tier: str
    work: Work
    max_at_risk: int | None = None


def at_risk_by_tier(found: RisksOf, tiers: Sequence[str]) -> tuple[TierAtRisk, ...]:
    """Return the work at risk, the highest tier first, without tiers that have none."""
    parts: defaultdict[str, list[Work]] = defaultdict(list)
    for (_, tier, exact), gpu_seconds in found.items():
        parts[tier].append(Work(gpu_seconds, exact))
    names = [*tiers, *sorted(parts.keys() - {*tiers})]
    return tuple(TierAtRisk(name, summed(parts[name])) for name in names if name in parts)


async def read_risks(client: Client, policy: TierPolicy, names: Sequence[str] = ()) -> RisksOf:
    """Return the work at risk of the pods that run now, of these tenants or of all. Raises ApiError.

    Only the program knows when it last saved, so the result is an upper bound: the work since the pod's start. Claims
    are not read: a pod says what it was admitted with.
    """
    ranked = by_age(each.tenant for each in await tenant_quotas(client) if each.tenant)
    homes = {each.name: tenant_among(ranked, each.labels) for each in await listed_namespaces(client)}
    found, now = defaultdict[tuple[str, str, bool], float](float), datetime.now(UTC).timestamp()
    async for _, pod in pods_with_json(client, policy, no_claims):
        work, tenant = work_since(pod.gpus + pod.claimed, now, None, pod.work_to_lose), homes.get(pod.namespace)
        name = tenant.name if tenant else ""
        if work is not None and pod.node and (not names or name in names):
            found[name, pod.tier or "", work.exact] += work.gpu_seconds
    return found


NO_TIER = "no tier"


OnNode = tuple[str, Holding, Decimal]
"""A node, the charge of a pod on it, and the pod's counted GPUs: a claim that pods share counts once."""


class WaitingPod(msgspec.Struct, frozen=True):
    """A pod with GPUs that is on no node. `workload` made it, `since` is when it was created, in RFC 3339.

    `gated`: the scheduler does not look at it yet.
    """

    holding: Holding
    workload: str
    since: str
    why: str
    gated: bool = False

    @property
    def tier(self) -> str:
        return self.holding.charge.tier or ""


class TierGpus(Shown, frozen=True):
    """The GPUs of a tier's pods on nodes, and of its pending pods: `since` is when the oldest of them was created."""

    name: str
    used: Gpus
    waiting: Gpus
    since: str = ""


class Waits(Shown, frozen=True):
    """A workload's pending pods, for `gpus` in all. `why` is the reason of the oldest pod."""

    namespace: str
    workload: str
    tenant: str
    tier: str
    pods: int
    gpus: Gpus
    since: str
    why: str


class GpusNow(Shown, frozen=True):
    """The cluster's GPUs. `free` and `closed` are unused ones on open and on other nodes; None if nodes are unknown.

    `lost` are nodes that are not Ready and have pods with GPUs.
    """

    tiers: tuple[TierGpus, ...]
    free: Gpus | None
    closed: Gpus | None
    waits: tuple[Waits, ...]
    lost: tuple[str, ...] = ()

    @property
    def used(self) -> Gpus:
        """Return the used GPUs on nodes, of all tiers."""
        return _sum(each.used for each in self.tiers)

    @property
    def waiting(self) -> Gpus:
        """Return the GPUs of pods on no node."""
        return _sum(each.waiting for each in self.tiers)

    @property
    def total(self) -> Gpus:
        """Return all GPUs, as far as known."""
        return _sum((self.used, self.free or 0, self.closed or 0))


def _sum(gpus: Iterable[Gpus]) -> Gpus:
    """Return the sum in decimal: 0.1 and 0.2 are 0.3."""
    return as_number(sum((Decimal(str(each)) for each in gpus), Decimal(0)))


def gpus_now(
    tiers: Sequence[str],
    holdings: Iterable[OnNode],
    waiting: Iterable[WaitingPod],
    nodes: Sequence[GpuNode] | None,
    tenant_of: Callable[[str], str | None],
) -> GpusNow:
    """Return the GPUs; `tiers` are the policy's, the highest first. `nodes` is None if they could not be read."""
    used, on_node = defaultdict[str, Decimal](Decimal), defaultdict[str, Decimal](Decimal)
    for node, holding, gpus in holdings:
        used[holding.charge.tier or ""] += gpus
        on_node[node] += gpus
    # The pending pods, one entry for each workload and tier, the highest tier first.
    groups: defaultdict[tuple[str, str, str], list[WaitingPod]] = defaultdict(list)
    for each in waiting:
        groups[each.holding.namespace, each.workload, each.tier].append(each)
    unordered = []
    for (namespace, workload, tier), pods in groups.items():
        first = min(pods, key=lambda pod: pod.since)
        sought = as_number(sum((each.holding.charge.gpus for each in pods), Decimal(0)))
        tenant = tenant_of(namespace) or ""
        unordered.append(Waits(namespace, workload, tenant, tier, len(pods), sought, first.since, first.why))
    ranks = {tier: rank for rank, tier in enumerate(tiers)}
    waits = tuple(sorted(unordered, key=lambda wait: (ranks.get(wait.tier, len(ranks)), wait.since)))
    asked = {tier: _sum(each.gpus for each in waits if each.tier == tier) for tier in {each.tier for each in waits}}
    since = {each.tier: each.since for each in sorted(waits, key=lambda each: each.since, reverse=True)}
    names = [*tiers, *sorted((used.keys() | asked.keys()) - {*tiers})]
    shown = (
        TierGpus(name or NO_TIER, as_number(used[name]), asked.get(name, 0), since.get(name, "")) for name in names
    )
    # The unused GPUs. Pods may use more than a node's plugin offers, if they claim GPUs by DRA.
    left = [(each.open, max(each.gpus - on_node[each.name], Decimal(0))) for each in nodes or ()]
    free, closed = (
        None if nodes is None else as_number(sum((gpus for is_open, gpus in left if is_open == wanted), Decimal(0)))
        for wanted in (True, False)
    )
    lost = tuple(sorted(each.name for each in nodes or () if each.lost and on_node[each.name]))
    return GpusNow(tuple(shown), free, closed, waits, lost)


def scattered_gpus(nodes: Iterable[GpuNode], holdings: Iterable[OnNode], asks: Iterable[Decimal]) -> Decimal:
    """Return free GPUs of nodes with too few for any pending pod, if together they are enough for one; otherwise 0."""
    on_node, smallest = defaultdict[str, Decimal](Decimal), min(asks, default=Decimal(0))
    for node, _, gpus in holdings:
        on_node[node] += gpus
    left = (each.gpus - on_node[each.name] for each in nodes if each.open)
    scattered = sum((each for each in left if 0 < each < smallest), Decimal(0))
    return scattered if scattered >= smallest else Decimal(0)


EVERY, DAY = 60.0, 24 * 60 * 60.0
"""The least seconds between two samples, and the seconds for which such samples are stored."""


class UseAt(msgspec.Struct, frozen=True):
    """GPUs by tier, at a time in seconds since 1970."""

    time: float
    gpus: Mapping[str, float]


class Evicted(msgspec.Struct, frozen=True):
    """Pods of a tier that were preempted about a time, in seconds since 1970."""

    time: float
    tier: str
    pods: float = 1.0


class DayOfUse(msgspec.Struct, frozen=True):
    """The last day by a Prometheus, the oldest samples and preemptions first; `problem` says why there are none."""

    seen: tuple[UseAt, ...] = ()
    evicted: tuple[Evicted, ...] = ()
    problem: str = ""


class UseOverTime:
    """The GPUs in use by tier during the last day, as samples that are at least a minute apart."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._history: deque[UseAt] = deque(maxlen=int(DAY / EVERY))

    def add(self, in_use: Mapping[tuple[str, str, str], float]) -> None:
        """Add a sample of the GPUs in use now, which `in_use` has by tenant, tier and flavor.

        It does nothing within EVERY seconds of the last sample.
        """
        now = self._clock()
        if not self._history or now - self._history[-1].time >= EVERY:
            by_tier: defaultdict[str, float] = defaultdict(float)
            for (_, tier, _), gpus in in_use.items():
                by_tier[tier] += gpus
            self._history.append(UseAt(now, dict(by_tier)))

    def forget(self) -> None:
        """Forget all samples, because another process counts from now on, and later samples would leave a gap."""
        self._history.clear()

    def __iter__(self) -> Iterator[UseAt]:
        """Yield the samples, the oldest first."""
        return iter(self._history)
