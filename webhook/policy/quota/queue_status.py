"""The queue of a tenant: which workloads are queued, for how many GPUs, why, and warnings about them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import groupby
from typing import Any, Protocol

import msgspec
from msgspec.structs import replace

from webhook.objects.quantities import written, written_gpus
from webhook.objects.refusal import AdmissionWarning, Aside, Phrase
from webhook.objects.view import Tree, all_at, at, mapped
from webhook.policy.quota.charges import Shortfall, reserved_for_queue, row_usage
from webhook.policy.values.tenants import Tenant
from webhook.policy.workloads.kind_table import KindRow

MOST_PLACES = 20
"""Positions of the queue in a TenantQuota's status: the first ones."""
WAITS_FOR = "waits for "
"""The start of a pod's condition once we have written it. The API server's own text is only about gates."""

NOT_OPENED = "GateNotOpened"
"""The reason of the Event on a pod that may start, but whose gate somebody else keeps shut."""


class QueuedWorkload(msgspec.Struct, frozen=True):
    """A queued workload, or a single pod. `since` is when it was first queued, in RFC 3339.

    `uid` is that of the gang, or of the owner that made the pods, or of the pod. `short` is a row that has no room for
    it, "" for none. `behind` is the position, from 1, of the workload that it may not pass, 0 for none.
    """

    namespace: str
    workload: str
    uid: str
    tier: str
    pods: int
    gpus: Decimal
    since: str
    short: str = ""
    behind: int = 0

    @property
    def same_position(self) -> tuple[str, str, str]:
        return self.namespace, self.uid, self.tier


class QueuePosition(Protocol):
    """A position in a queue, as its status has it."""

    @property
    def namespace(self) -> str: ...
    @property
    def workload(self) -> str: ...
    @property
    def tier(self) -> str: ...
    @property
    def gpus(self) -> Decimal | int | float: ...
    @property
    def short(self) -> str: ...
    @property
    def behind(self) -> int: ...


def of_tier(place: QueuePosition) -> bool:
    """Tell whether the row without room counts only pods of the position's tier."""
    return f"{place.short} ".startswith(f"{place.tier} ")


def blocked_by(places: Sequence[QueuePosition], nth: int) -> str:
    """Return the workload that blocks the position `nth`, counted from 1, and its GPUs; "" if none does."""
    own = places[nth - 1]
    if not 0 < own.behind <= len(places):
        return ""
    head = places[own.behind - 1]
    where = "" if head.namespace == own.namespace else f" in {head.namespace}"
    return f"{head.workload}{where} (needs {written_gpus(Decimal(str(head.gpus)))})"


class QueueStatus(msgspec.Struct, frozen=True):
    """The queue of a tenant: all positions in their order."""

    places: tuple[QueuedWorkload, ...] = ()

    @classmethod
    def of(cls, waiting: Iterable[QueuedWorkload]) -> "QueueStatus":
        """Return the queue. Consecutive pods of one workload, such as 50 replicas of a Deployment, share a position."""
        places = []
        for _, alike in groupby(waiting, key=lambda each: each.same_position):
            first, *more = found = list(alike)
            short = next((each.short for each in found if each.short), "")
            pods, gpus = sum(each.pods for each in found), sum((each.gpus for each in found), Decimal(0))
            places.append(replace(first, pods=pods, gpus=gpus, short=short) if more else first)
        return cls(tuple(places))

    def by_tier(self) -> Mapping[str, tuple[int, Decimal]]:
        """Return the queued pods and their GPUs, by tier."""
        sums: dict[str, tuple[int, Decimal]] = {}
        for each in self.places:
            pods, gpus = sums.get(each.tier, (0, Decimal(0)))
            sums[each.tier] = pods + each.pods, gpus + each.gpus
        return sums

    def status(self) -> dict[str, Any]:
        """Return the queue's part of a TenantQuota's status."""
        tiers = self.by_tier()
        return {
            "pods": sum(pods for pods, _ in tiers.values()),
            "workloads": len(self.places),
            "tiers": [
                ({"tier": tier} if tier else {}) | {"pods": pods, "gpus": written(gpus)}
                for tier, (pods, gpus) in tiers.items()
            ],
            "entries": [_shown(each) for each in self.places[:MOST_PLACES]],
        }


def _shown(place: QueuedWorkload) -> dict[str, Any]:
    said: dict[str, Any] = {"namespace": place.namespace, "workload": place.workload, "uid": place.uid}
    said |= {"tier": place.tier} if place.tier else {}
    said |= {"pods": place.pods, "gpus": written(place.gpus), "since": place.since}
    said |= {"short": place.short} if place.short else {}
    return said | ({"behind": place.behind} if place.behind else {})


class NoRoom(msgspec.Struct, frozen=True):
    """A row without room, as a refusal names it, and its usage. `reserved` is the part for pods queued earlier.

    `never`: even the empty row has no room, because the quota was lowered since. `hours` are the words for a budget
    that is used up, where the row is one.
    """

    row: str
    used: Decimal
    hard: Decimal
    never: bool = False
    reserved: Decimal = Decimal(0)
    hours: Phrase | str = ""

    @classmethod
    def of(cls, found: Shortfall) -> "NoRoom":
        used, hard = found.usage.get(found.row, Decimal(0)), found.row.hard
        if found.row.spent:
            return cls(found.row.subject, used, hard, hours=row_usage(found.row, {}, {}))
        return cls(found.row.subject, used, hard, found.charge.gpus > hard, found.reserved.get(found.row, Decimal(0)))

    @property
    def separate(self) -> tuple[Decimal, Aside]:
        """Return the usage without what is reserved, and the words for that, so that no GPU is counted twice."""
        return self.used - self.reserved, reserved_for_queue(self.reserved)


def why_queued(gpus: Decimal, tenant: str, no_room: NoRoom | None, before: str, nth: tuple[int, int]) -> Phrase:
    """Return the words for why a workload with so many GPUs is queued, and for its position.

    `no_room` is the row without room for it, None if it only waits behind others. `before` is the workload that keeps
    it back, "" for none. `nth` has the position of the queued workload and the length of the queue.
    """
    place = Phrase("queue-position", place=nth[0], count=nth[1])
    if no_room is not None:
        row, hard = no_room.row, no_room.hard
        if no_room.hours:
            return Phrase("queued-for-hours", gpus=gpus, tenant=tenant, hours=no_room.hours, place=place)
        if no_room.never and not hard:
            return Phrase("queued-for-none", gpus=gpus, row=row, tenant=tenant, place=place)
        if no_room.never:
            return Phrase("queued-for-good", gpus=gpus, row=row, tenant=tenant, hard=hard, place=place)
        used, reserved = no_room.separate
        return Phrase(
            "queued-for-room",
            gpus=gpus,
            behind=Aside("behind-another", before=before) if before else Aside("behind-nobody"),
            tenant=tenant,
            row=row,
            used=used,
            hard=hard,
            reserved=reserved,
            place=place,
        )
    if before:
        return Phrase("queued-behind", gpus=gpus, tenant=tenant, before=before, place=place)
    return Phrase("queued-next", gpus=gpus, tenant=tenant, place=place)


def hold_order_phrase(tenant: Tenant) -> Phrase:
    """Return whether a workload with room may pass an earlier one without, and the field that says so."""
    if tenant.hold_order == "BestEffort":
        return Phrase("order-best-effort", tenant=tenant.name)
    if tenant.reserve_seconds is not None:
        return Phrase("order-strict-for", tenant=tenant.name, seconds=tenant.reserve_seconds)
    return Phrase("order-strict", tenant=tenant.name)


def would_be_queued(tenant: str, no_room: NoRoom, line: int) -> Phrase:
    """Return what a pod that is created now would wait for, with `line` workloads in the queue."""
    waiting = Phrase("workload-waits") if line == 1 else Phrase("workloads-wait", count=line)
    row, hard = no_room.row, no_room.hard
    others = Phrase("and-queued", waiting=waiting) if line else ""
    if no_room.hours:
        return Phrase("would-wait-for-hours", tenant=tenant, hours=no_room.hours, waiting=others)
    used, reserved = no_room.separate
    return Phrase(
        "would-wait-for-room", tenant=tenant, row=row, used=used, hard=hard, reserved=reserved, waiting=others
    )


def ends_surge(tree: Tree, row: KindRow) -> str:
    """Return the setting by which a workload's rollouts replace old pods one by one.

    "" if the rollouts make no pods next to the old ones already, or if they end all old pods first.

    Controllers round a percentage up. A `maxUnavailable` of 0 is refused beside a `maxSurge` of 0.
    """
    kind = row.while_queued
    surge = at(tree, kind.surge) if kind.surge else 0
    some = kind.surge_by_default if surge is None else not _is_zero(surge)
    recreates = at(tree, "spec.strategy.type") == "Recreate" or (kind.unless and at(tree, kind.unless) is not None)
    if not some or recreates:
        return ""
    unavailable = at(tree, kind.surge.replace("maxSurge", "maxUnavailable"))
    if unavailable is not None and _is_zero(unavailable):
        return "maxSurge: 0 and maxUnavailable: 1"  # whoever wrote one of them knows the path
    return f"{kind.surge}: 0"


def _is_zero(number: object) -> bool:
    return str(number).removesuffix("%").strip("0") == ""


def hold_warnings(tree: Tree, row: KindRow) -> Iterator[AdmissionWarning]:
    """Yield warnings of a workload that is not suspended and whose tenant queues pods."""
    kind = row.while_queued
    # 1. A rollout makes new pods next to the old ones, which keep their GPUs until the new ones run.
    if setting := ends_surge(tree, row):
        yield AdmissionWarning("queued-surge", setting=setting)

    # 2. Deadlines run while the pods are queued.
    for place in kind.deadlines:
        seconds = (found for _, found in all_at(tree, place) if found is not None)
        yield from (
            AdmissionWarning("queued-deadline", field=place.rpartition(".")[2], seconds=each) for each in seconds
        )
    policy = at(tree, kind.concurrency) or "Allow" if kind.concurrency else "Forbid"
    if policy != "Forbid":
        yield AdmissionWarning("queued-schedule", policy=policy)

    # 3. Queued pods keep others from being made, or are given up.
    replicas = at(tree, "spec.replicas")
    if kind.order and at(tree, kind.order) != "Parallel" and isinstance(replicas, int) and replicas > 1:
        yield AdmissionWarning("queued-in-order")
    if kind.on_every_node:
        yield AdmissionWarning("queued-on-nodes")
    if kind.progress:
        deadline = mapped(at(tree, kind.progress)).get("serving.knative.dev/progress-deadline")
        yield AdmissionWarning("queued-to-zero", deadline=deadline or "600s")
