"""The line of a tenant: which workloads are queued, for how many GPUs and for what, and their warnings."""

from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from itertools import groupby
from typing import Any

import msgspec
from msgspec.structs import replace

from webhook.objects.quantities import written
from webhook.objects.refusal import AdmissionWarning, Phrase
from webhook.objects.view import Tree, all_at, at, mapped
from webhook.policy.quota.charges import Shortfall, reserved_for_queue
from webhook.policy.workloads.kind_table import KindRow

MOST_PLACES = 20
"""Places of a line that a TenantQuota's status has, the first ones."""
TOLD = "waits for "
"""So begins what a pod's condition says once it was told. The API server's own words are of gates alone."""

NOT_OPENED = "GateNotOpened"
"""The reason of the Event on a pod whose turn has come, and whose gate somebody else keeps shut."""


class QueuedWorkload(msgspec.Struct, frozen=True):
    """A workload that waits, or a pod alone. `since` when it was held first, in RFC 3339.

    `uid` is that of the gang, else of what made the pods, else of the pod. `short` is the row that has no room for it;
    "" where it waits behind others, or for its gate alone.
    """

    namespace: str
    workload: str
    uid: str
    tier: str
    pods: int
    gpus: Decimal
    since: str
    short: str = ""

    @property
    def whose(self) -> tuple[str, str, str]:
        return self.namespace, self.uid, self.tier


class QueueStatus(msgspec.Struct, frozen=True):
    """All places of a tenant's line, in the order of their turns."""

    places: tuple[QueuedWorkload, ...] = ()

    @classmethod
    def of(cls, waiting: Iterable[QueuedWorkload]) -> "QueueStatus":
        """Pods of one workload that follow one another have one place: 50 replicas of a Deployment are no line."""
        places = []
        for _, alike in groupby(waiting, key=lambda each: each.whose):
            first, *more = found = list(alike)
            short = next((each.short for each in found if each.short), "")
            pods, gpus = sum(each.pods for each in found), sum((each.gpus for each in found), Decimal(0))
            places.append(replace(first, pods=pods, gpus=gpus, short=short) if more else first)
        return cls(tuple(places))

    def before(self, nth: int) -> str:
        """Return who has the place before that one, counted from 1; "" where nobody has."""
        if nth == 1:
            return ""
        one, other = self.places[nth - 1], self.places[nth - 2]
        return other.workload if one.namespace == other.namespace else f"{other.workload} in {other.namespace}"

    def by_tier(self) -> Mapping[str, tuple[int, Decimal]]:
        """The pods that wait and the GPUs that they ask for, by tier."""
        sums: dict[str, tuple[int, Decimal]] = {}
        for each in self.places:
            pods, gpus = sums.get(each.tier, (0, Decimal(0)))
            sums[each.tier] = pods + each.pods, gpus + each.gpus
        return sums

    def status(self) -> dict[str, Any]:
        """Return what a TenantQuota's status says of it."""
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
    return said | ({"short": place.short} if place.short else {})


class NoRoom(msgspec.Struct, frozen=True):
    """A row that is short, as a refusal names it, and its usage, of which so much is reserved for pods queued earlier.

    `never`: it would be short even if nobody used it, so the quota was lowered since.
    """

    row: str
    used: Decimal
    hard: Decimal
    never: bool = False
    reserved: Decimal = Decimal(0)

    @classmethod
    def of(cls, found: Shortfall) -> "NoRoom":
        used, hard = found.usage.get(found.row, Decimal(0)), found.row.hard
        return cls(found.row.subject, used, hard, found.charge.gpus > hard, found.reserved.get(found.row, Decimal(0)))


def why_queued(gpus: Decimal, tenant: str, no_room: NoRoom | None, before: str, nth: tuple[int, int]) -> Phrase:
    """Return why a workload waits that asks for so many GPUs.

    `before` is who comes before it, "" for nobody, and `nth` its place and how many there are.
    """
    place = Phrase("queue-position", place=nth[0], count=nth[1])
    if no_room is not None:
        row, used, hard = no_room.row, no_room.used, no_room.hard
        if no_room.never:
            return Phrase("queued-for-good", gpus=gpus, row=row, tenant=tenant, hard=hard, place=place)
        reserved = reserved_for_queue(no_room.reserved)
        return Phrase(
            "queued-for-room", gpus=gpus, row=row, tenant=tenant, used=used, hard=hard, reserved=reserved, place=place
        )
    if before:
        return Phrase("queued-behind", gpus=gpus, tenant=tenant, before=before, place=place)
    return Phrase("queued-next", gpus=gpus, tenant=tenant, place=place)


def would_be_queued(tenant: str, no_room: NoRoom | None, line: int) -> Phrase:
    """Tell what a pod waits for that is created now, with so many workloads in the line."""
    waiting = Phrase("workload-waits") if line == 1 else Phrase("workloads-wait", count=line)
    if no_room is None:
        return Phrase("would-wait-behind", tenant=tenant, waiting=waiting)
    row, used, hard = no_room.row, no_room.used, no_room.hard
    others = Phrase("and-queued", waiting=waiting) if line else ""
    reserved = reserved_for_queue(no_room.reserved)
    return Phrase(
        "would-wait-for-room", tenant=tenant, row=row, used=used, hard=hard, reserved=reserved, waiting=others
    )


def hold_warnings(tree: Tree, row: KindRow) -> Iterator[AdmissionWarning]:
    """Yield those of a workload that is not suspended and whose tenant holds."""
    kind = row.while_queued
    # 1. A rollout makes new pods beside the old ones, which keep their GPUs until the new ones run. Controllers round
    #    a percentage up.
    surge = at(tree, kind.surge) if kind.surge else 0
    some = kind.surge_by_default if surge is None else str(surge).removesuffix("%").strip("0") != ""
    recreates = at(tree, "spec.strategy.type") == "Recreate" or (kind.unless and at(tree, kind.unless) is not None)
    if some and not recreates:
        yield AdmissionWarning("queued-surge", field=kind.surge)

    # 2. Clocks run while the pods wait.
    for place in kind.deadlines:
        seconds = (found for _, found in all_at(tree, place) if found is not None)
        yield from (
            AdmissionWarning("queued-deadline", field=place.rpartition(".")[2], seconds=each) for each in seconds
        )
    policy = at(tree, kind.concurrency) or "Allow" if kind.concurrency else "Forbid"
    if policy != "Forbid":
        yield AdmissionWarning("queued-schedule", policy=policy)

    # 3. Pods that wait keep others from being made, or are given up.
    replicas = at(tree, "spec.replicas")
    if kind.order and at(tree, kind.order) != "Parallel" and isinstance(replicas, int) and replicas > 1:
        yield AdmissionWarning("queued-in-order")
    if kind.on_every_node:
        yield AdmissionWarning("queued-on-nodes")
    if kind.progress:
        deadline = mapped(at(tree, kind.progress)).get("serving.knative.dev/progress-deadline")
        yield AdmissionWarning("queued-to-zero", deadline=deadline or "600s")
