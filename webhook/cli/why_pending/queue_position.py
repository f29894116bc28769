"""The queue position of a pod: the workloads before it, and the latest time at which it has room."""

from collections.abc import AsyncIterator, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from types import MappingProxyType

from msgspec.structs import replace

from webhook.admission.facts import usage_met
from webhook.cli.cluster.lease import warn_if_nobody_leads
from webhook.cli.cluster.one_object import AskedCluster, events_about, pods_of_workload
from webhook.cli.explain.explanation import next_decision
from webhook.cli.explain.other_tiers import Situation, full_resource_quota, offers, tiers_to_name
from webhook.cli.explain.replacement import charge_of_existing
from webhook.cli.manifests.documents import Document
from webhook.cli.manifests.finding import Finding
from webhook.cluster.listed import PodSummary, listed_trees, pods_with_json
from webhook.kube.client import RFC_3339, path
from webhook.kube.errors import Forbidden
from webhook.ledger.versions import Version
from webhook.objects.group_kind import GroupKind
from webhook.objects.pods import Metadata, Named, Pod
from webhook.objects.quantities import written, written_gpus
from webhook.objects.refusal import Phrase, first_of
from webhook.objects.view import Tree, View, read, view
from webhook.policy.assignment.limits import charge_of_all
from webhook.policy.assignment.request import GANG
from webhook.policy.quota.charges import alternatives, named_flavor
from webhook.policy.quota.native_quotas import native_rooms
from webhook.policy.quota.queue_status import NOT_OPENED, NoRoom, blocked_by, of_tier, why_queued
from webhook.policy.values.tenants import QuotaRow, Tenant, Usage
from webhook.report.tenants import QueuedShown, TenantShown, tenant_shown
from webhook.report.waiting import running_pods
from webhook.sentences.sentence import sentence

MOST_BEFORE = 3


def position_of(
    tenant: TenantShown, namespace: str, uids: frozenset[str], created: str | None = None
) -> QueuedShown | None:
    """Return the entry of a tenant's queue for one of these uids; None if the status shows none.

    Pods of one owner have several entries if others came between. Then it is the last that begins before the pod was
    `created`.
    """
    found = [each for each in tenant.queue.entries if each.namespace == namespace and each.uid in uids]
    earlier = [each for each in found if created and each.since <= created]
    if earlier:
        return earlier[-1]
    return found[0] if found else None


def in_queue(
    tenant: TenantShown,
    place: QueuedShown | None,
    reserved: Mapping[str, Decimal] = MappingProxyType({}),
    stuck: str = "",
    *,
    one_by_one: bool = False,
) -> Iterator[str]:
    """Yield the sentences on a workload's position in its tenant's queue, and on the workloads before it.

    `place` is its entry in the queue, None if it has none. `reserved` are the GPUs that the queue reserves for others,
    by row. `stuck` says why it does not start by itself, "" if it does. `one_by_one`: each of its pods starts alone.
    """
    line = tenant.queue.entries
    if place is not None:
        at_once = _gpus_of_a_pod(place) if one_by_one else Decimal(str(place.gpus))
        yield _why(tenant, place, reserved, at_once, stuck)
        yield from _before([each for each in line[: place.nth - 1] if each.tier == place.tier or not of_tier(place)])
        if tenant.queue_order and max(tenant.queue.workloads, place.nth) > 1:
            yield f"{tenant.queue_order}."
    elif tenant.queue.workloads > len(line):
        yield (
            f"It is not among the first {len(line)} of the {tenant.queue.workloads} workloads in the queue of tenant "
            f"{tenant.name}."
        )
    else:
        yield (
            f"It is not in the queue of tenant {tenant.name}: its gate opens in a moment, the leader has not seen it "
            "yet, or its workload has ended."
        )


def _gpus_of_a_pod(place: QueuedShown) -> Decimal:
    return Decimal(str(place.gpus)) / max(place.pods, 1)


def _why(tenant: TenantShown, place: QueuedShown, reserved: Mapping[str, Decimal], at_once: Decimal, stuck: str) -> str:
    row = next((each for each in tenant.rows if each.subject == place.short), None)
    budget = next((each for each in tenant.budgets if each.row == place.short), None)
    short = None
    if row is not None:
        ahead, hard = reserved.get(row.subject, Decimal(0)), Decimal(str(row.hard))
        used, subject = Decimal(str(row.used + row.reserved)), "the total" if row.subject == "total" else row.subject
        short = NoRoom(subject, used + ahead, hard, never=at_once > hard, reserved=ahead)
    elif budget is not None:
        short = NoRoom(budget.row, Decimal(0), Decimal(0), hours=budget.sentence)
    before = blocked_by(tenant.queue.entries, place.nth)
    count = max(tenant.queue.workloads, place.nth)
    text = sentence(why_queued(Decimal(str(place.gpus)), tenant.name, short, before, (place.nth, count)))
    then = stuck or ("" if short and short.never else "It starts by itself.")
    return f"It {text}. {then}".rstrip()


def _before(places: Sequence[QueuedShown]) -> Iterator[str]:
    """Yield the sentence on the workloads before it, also of other namespaces, because the queue is the tenant's."""
    if not places:
        return
    gpus = sum((Decimal(str(each.gpus)) for each in places), Decimal(0))
    named = [_named(each) for each in places]
    yield f"Before it: {first_of(named, MOST_BEFORE)}; {written_gpus(gpus)} in all."


def _named(place: QueuedShown) -> str:
    gpus = written_gpus(Decimal(str(place.gpus)))
    return f"{place.workload} in {place.namespace} ({gpus}, {place.tier or 'no tier'})"


Use = tuple[datetime, PodSummary]
"""The latest time at which a pod on a node releases its GPUs, and the pod."""
HAS_ROOM_NOW = datetime.min.replace(tzinfo=UTC)


def room_at_latest(
    line: Sequence[QueuedShown], flavor: str | None, tenant: Tenant, usage: Usage, uses: Iterable[Use]
) -> datetime | None:
    """Return when the last workload of `line` surely has room if no other passes it; None if unknown or at once.

    The workloads before it are assumed to run forever, and to count on every row of their tier.
    """
    own, ends = line[-1], sorted(uses, key=lambda each: each[0])
    drawn = [
        row for row in tenant.rows if row.tier in (None, own.tier) and (not flavor or row.flavor in (None, flavor))
    ]
    found = [_room_in(row, line, usage, ends) for row in drawn]
    latest = max((each for each in found if each), default=HAS_ROOM_NOW)
    return latest if None not in found and latest > HAS_ROOM_NOW else None


def _room_in(row: QuotaRow, line: Iterable[QueuedShown], usage: Usage, ends: Iterable[Use]) -> datetime | None:
    """Return when a row has room for all workloads of `line`; None if never by these `ends`, the earliest first."""
    asked = sum((Decimal(str(each.gpus)) for each in line if row.tier in (None, each.tier)), Decimal(0))
    lacks = usage.get(row, Decimal(0)) + asked - row.hard
    if lacks <= 0:
        return HAS_ROOM_NOW
    for until, pod in ends:
        lacks -= pod.gpus if row.counts(pod.tier, pod.flavor) else 0
        if lacks <= 0:
            return until
    return None


def said_at_latest(room: datetime) -> str:
    return (
        f"It has room by {room.strftime(RFC_3339)}, when the activeDeadlineSeconds of running workloads end them, "
        "unless work of a higher tier comes before it."
    )


async def queued_for_quota(asked: AskedCluster, document: Document, pod: Pod) -> tuple[str, ...]:
    """Return the sentences on a queued pod: its position, other tiers with room, and the latest time of its start.

    For a pod that the queue does not show, return the Events on a gate that could not be opened. Warn if nobody leads.
    """
    metadata = pod.metadata
    tenant = asked.cluster.known.tenant(await asked.cluster.known.namespace(metadata.namespace))
    if tenant is None or tenant.name not in asked.quotas:
        asked.reader.without("its position in the queue of its tenant", "tenants", "home")
        return ()
    await warn_if_nobody_leads(asked.reader.client, "no queued pod starts until one does")
    version = asked.quotas[tenant.name]
    shown = tenant_shown(version.quota)
    uids = frozenset({metadata.uid, metadata.controller_uid, metadata.annotations.get(GANG, "")} - {""})
    place = position_of(shown, metadata.namespace, uids, metadata.creation_timestamp)
    pods = await pods_of_workload(asked, metadata.namespace, place.uid) if place else ()
    own = uids | {view(each, Named).metadata.uid for each in pods or ()}
    for_others = asked.ledger.reserved_for_queue(tenant, asked.policy.tiers.rank(place.tier if place else None), own)
    reserved = {row.label: gpus for row, gpus in for_others.items()}
    stuck = await _stuck(asked, tenant, shown, place, pods or ()) if place else ""
    position = in_queue(
        shown, place, reserved, stuck, one_by_one=any(_starts_alone(asked, each) for each in pods or ())
    )
    if place is None:
        events = await events_about(asked, metadata.namespace, metadata.uid) or ()
        not_opened = (each["message"] for each in events if each.get("reason") == NOT_OPENED)
        return (*position, *(f"An Event {NOT_OPENED} says: {each}." for each in not_opened))
    if stuck:
        return tuple(position)
    flavor, roomy = named_flavor(pod, asked.policy.flavors), await _roomy_tiers(asked, document, place, own)
    if flavor is None and any(row.flavor and row.label == place.short for row in tenant.rows):
        roomy = (sentence(Phrase("flavor-unnamed")).rstrip(), *roomy)
    if place.for_hours:  # no end of a pod brings new hours
        return (*position, *roomy)
    line = shown.queue.entries[: place.nth]
    return (*position, *roomy, *[each async for each in _estimate(asked, version, line, flavor)])


async def _stuck(
    asked: AskedCluster, tenant: Tenant, shown: TenantShown, place: QueuedShown, own_pods: Iterable[Tree]
) -> str:
    """Return the sentence that a queued workload, or the one that blocks it, lacks room for good; "" for neither.

    A Deployment can be scaled beyond its row, and its pods don't end by themselves, unlike those of a gang.
    """
    head = shown.queue.entries[place.behind - 1] if 0 < place.behind < place.nth else place
    for each in dict.fromkeys((place, head)):
        if each.namespace != place.namespace:
            continue
        # A workload that only waits behind another one names no row; each row of its tier may be too small for it.
        rows = [
            row
            for row in tenant.rows
            if (row.label == each.short if each.short else row.tier in (None, each.tier) and not row.flavor)
        ]
        pods = own_pods if each is place else await pods_of_workload(asked, each.namespace, each.uid)
        scaled = [(pod, view(pod, Pod)) for pod in running_pods(pods or ()) if _starts_alone(asked, pod)]
        running = [pod for pod, of in scaled if not of.waits_for_quota]
        charges = [charge for pod in running if (charge := await charge_of_existing(asked, pod))]
        for row in rows if scaled else ():
            own = sum((charge.gpus for charge in charges if row.counts(charge.tier, charge.flavor)), Decimal(0))
            of_a_pod = _gpus_of_a_pod(each)
            start = int(max(row.hard - own, Decimal(0)) / of_a_pod) if of_a_pod else each.pods
            if start >= each.pods or not (own or start):
                continue  # all start, or a pod is larger than the row
            subject = "Its" if each is place else f"{each.workload} comes before it, and its"
            of = f"of the {written_gpus(row.hard)} of {row.subject}"
            uses = f"own pods use {written(own)} {of}" if own else f"pods may use {written(row.hard)} {of}"
            helps = f"at most {start} of its {each.pods} queued pods can start" if start else "waiting does not help"
            return f"{subject} {uses}, so {helps}: scale {'it' if each is place else each.workload} down."
    return ""


def _starts_alone(asked: AskedCluster, pod: Tree) -> bool:
    """Tell whether a workload makes this pod that needs no room for all of its pods at once, such as a Deployment."""
    by = view(pod, Pod).metadata.controller
    kind = asked.policy.kinds.by_kind.get(GroupKind(by.group, by.kind)) if by else None
    return kind is not None and not kind.gang


async def _roomy_tiers(
    asked: AskedCluster, document: Document, place: QueuedShown, own: Collection[str]
) -> tuple[str, ...]:
    """Return the sentence on the tiers that have room for a queued workload now, like a refusal with onExceed Deny.

    `own` are the uids under which the queue reserves GPUs for the workload.
    """
    decision = await next_decision(asked, document)
    tenant, charge = (decision.tier_request.facts.tenant, decision.charge) if decision else (None, None)
    if decision is None or tenant is None or charge is None:
        return ()
    # To name another tier, the workload is made again with all of its pods.
    gpus = max(Decimal(str(place.gpus)), charge_of_all(decision.tier_request, charge).gpus)
    whole, tiers = replace(charge, gpus=gpus, tier=place.tier), asked.policy.tiers
    native = await asked.cluster.lookups.native_quotas(document.namespace)
    situation = Situation(asked.ledger, native, await tiers_to_name(asked, document.namespace), own)
    rooms = native_rooms(decision.tier_request.pod, charge.gpus, native, asked.policy)
    bounds = {name: room.left for name, room in rooms.items()}
    offered, found = offers(decision, situation), list[str]()
    for tier in (each for each in tiers if not offered[each.name].closed):
        usage, _ = usage_met(asked.ledger, tenant, tiers.rank(tier.name), own=own)
        for each, left in alternatives(whole, tenant, usage, [tier], bounds):
            found.append(f"{each.name} ({'no limit' if left is None else f'{written(left)} left'})")
    return (f"Tiers with room for it now: {', '.join(found)}.",) if found else ()


async def no_native_room(asked: AskedCluster, namespace: str, finding: Finding | None) -> str:
    """Return the ResourceQuota that leaves too little for a pod of a finding, with what it leaves; "" without one."""
    decisions = [part.verdict.decision for part in finding.parts] if finding else []
    charged = [(each.charge, each.tier_request.pod) for each in decisions if each and each.charge]
    native = await asked.cluster.lookups.native_quotas(namespace) if charged else ()
    rooms = ((charge, native_rooms(pod, charge.gpus, native, asked.policy)) for charge, pod in charged)
    found = (full_resource_quota(room.get(charge.tier or ""), charge.gpus) for charge, room in rooms)
    return next(filter(None, found), "")


async def _estimate(
    asked: AskedCluster, version: Version, line: tuple[QueuedShown, ...], flavor: str | None
) -> AsyncIterator[str]:
    """Yield when the last workload of `line` has room; nothing if others may pass it, or pods may not be listed."""
    tenant = version.tenant
    if tenant is None or tenant.hold_order != "Strict" or tenant.reserve_seconds is not None:
        return
    try:
        uses = [each for namespace in version.account.namespaces for each in await _uses(asked, namespace)]
    except Forbidden:
        return
    room = room_at_latest(line, flavor, tenant, asked.ledger.usage(tenant), uses)
    if room is not None:
        yield said_at_latest(room)


class _Spec(View, frozen=True):
    active_deadline_seconds: int | None = None


class _Status(View, frozen=True):
    start_time: str | None = None


class _Timed(View, frozen=True):
    """A Job or a pod: its maximum run time, and its start."""

    metadata: Metadata = Metadata()
    spec: _Spec = _Spec()
    status: _Status = _Status()

    @property
    def until(self) -> datetime | None:
        """Return the deadline; None without one, before its start, or if a controller may make another in its place."""
        seconds, started, by = self.spec.active_deadline_seconds, self.status.start_time, self.metadata.controller
        if seconds is None or started is None or (by is not None and by.kind != "CronJob"):
            return None
        return datetime.fromisoformat(started) + timedelta(seconds=seconds)


async def _uses(asked: AskedCluster, namespace: str) -> list[Use]:
    """Return a namespace's pods on nodes whose own or Job's deadline ends them, and when. Raises Forbidden."""
    client, claims = asked.reader.client, asked.reader.lookups.devices
    jobs = [view(each, _Timed) for each in await listed_trees(client, path("batch/v1", "jobs", namespace))]
    ends = {each.metadata.uid: each.until for each in jobs}
    found: list[Use] = []
    async for raw, pod in pods_with_json(client, asked.policy, claims, namespace):
        until = ends.get(pod.owner.uid) if pod.owner else read(raw, _Timed).until
        if pod.node and until is not None:
            found.append((until + timedelta(seconds=pod.grace), pod))
    return found
