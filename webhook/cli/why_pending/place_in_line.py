"""Finds out when the turn of a pod comes that waits for quota."""

from collections.abc import AsyncIterator, Iterator
from datetime import datetime, timedelta

from webhook.cli.cluster.one_object import AskedCluster, events_about
from webhook.cluster.listed import listed_trees
from webhook.cluster.pod_listing import pods_with_json
from webhook.kube.errors import Forbidden
from webhook.kube.paths import path
from webhook.ledger.versions import Version
from webhook.objects.group_kind import GroupKind
from webhook.objects.pods import Metadata, Pod
from webhook.objects.view import Tree, View, at, read, view
from webhook.policy.assignment.request import GANG
from webhook.policy.quota.flavors import named_flavor
from webhook.policy.quota.held import NOT_OPENED
from webhook.policy.quota.held_warnings import held_warnings
from webhook.report.tenants import PlaceShown, tenant_shown
from webhook.report.turn import Use, in_line, place_in, room_at_latest, said_at_latest


async def held_by_quota(asked: AskedCluster, pod: Pod) -> tuple[str, ...]:
    """Where a pod that waits for its turn stands in the line of its tenant, as the TenantQuota says it."""
    metadata = pod.metadata
    tenant = asked.cluster.known.tenant(await asked.cluster.known.namespace(metadata.namespace))
    if tenant is None or tenant.name not in asked.quotas:
        return ()
    version = asked.quotas[tenant.name]
    shown = tenant_shown(version.quota)
    uids = frozenset({metadata.uid, metadata.controller_uid, metadata.annotations.get(GANG, "")} - {""})
    place = place_in(shown, metadata.namespace, uids)
    told = in_line(shown, place)
    if place is None:
        events = await events_about(asked, metadata.namespace, metadata.uid) or ()
        not_opened = (each["message"] for each in events if each.get("reason") == NOT_OPENED)
        return (*told, *(f"An Event {NOT_OPENED} says: {each}." for each in not_opened))
    flavor = named_flavor(pod, asked.policy.flavors)
    return (*told, *[each async for each in _estimate(asked, version, shown.held.line[: place.nth], flavor)])


def beside_old_pods(tree: Tree, kind: GroupKind) -> Iterator[str]:
    """That a rollout waits for GPUs that its own old pods may hold, and they for it."""
    pods, new = at(tree, "status.replicas"), at(tree, "status.updatedReplicas")
    if pods and pods != new:
        fields = (each.get("field") for each in held_warnings(tree, kind) if each.id == "held-surge")
        told = "A rollout is under way, and its new pods wait beside the old ones; set {}: 0."
        yield from (told.format(field) for field in fields)


async def _estimate(
    asked: AskedCluster, version: Version, line: tuple[PlaceShown, ...], flavor: str | None
) -> AsyncIterator[str]:
    """When the last of them has room. Nothing where others may pass it, or where not all that runs may be read."""
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
    """A Job or a pod: how long it may run, and since when it does."""

    metadata: Metadata = Metadata()
    spec: _Spec = _Spec()
    status: _Status = _Status()

    @property
    def until(self) -> datetime | None:
        """When it reaches its deadline; None where nothing declares one, or where a controller may make another."""
        seconds, started, by = self.spec.active_deadline_seconds, self.status.start_time, self.metadata.controller
        if seconds is None or started is None or (by is not None and by.kind != "CronJob"):
            return None
        return datetime.fromisoformat(started) + timedelta(seconds=seconds)


async def _uses(asked: AskedCluster, namespace: str) -> list[Use]:
    """What the pods of a namespace hold whose ends are declared, their grace periods among it. Raises Forbidden."""
    client, claims = asked.reader.client, asked.reader.lookups.claims.devices
    jobs = [view(each, _Timed) for each in await listed_trees(client, path("batch/v1", "jobs", namespace))]
    ends = {each.metadata.uid: each.until for each in jobs}
    found: list[Use] = []
    async for raw, pod in pods_with_json(client, asked.policy, claims, namespace):
        until = ends.get(pod.owner.uid) if pod.owner else read(raw, _Timed).until
        if pod.node and until is not None:
            found.append(Use(pod.gpus, pod.tier, pod.flavor, until + timedelta(seconds=pod.grace)))
    return found
