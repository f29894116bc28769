"""Takes the admission of one of Kueue's Workloads back, and lets Kueue try again.

It is taken back as Kueue's own reconcilers do it: by the condition Evicted. Kueue then suspends what it had admitted,
gives its quota back, and leaves the Workload aside for as long as the condition Requeued is False.
Source: step 6 of ReconcileGenericJob in pkg/controller/jobframework, and backoffWaitingTimeExpired in
pkg/cache/queue/cluster_queue.go of Kueue v0.15.
"""

from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta

from webhook.kube.client import Client
from webhook.kube.discovery import Discovery
from webhook.kube.errors import Conflict, NotFound
from webhook.kube.paths import path
from webhook.kube.wire import RFC_3339, listed_objects
from webhook.objects.kueue_workloads import NO_ROOM, ROOM_AGAIN, Condition, KueueWorkload
from webhook.objects.view import read

GROUP, PLURAL = "kueue.x-k8s.io", "workloads"
HAS_ROOM = "its tenant has room for it by now"
TRIES = 4
"""Kueue writes the same status at the same time."""


class KueueWorkloads:
    """Every method raises ApiError where the API server does not answer, and Unreadable where it serves no Kueue."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._discovery = Discovery(client)

    async def evict(self, namespace: str, owner_uid: str, sentence: str) -> bool:
        """Take back the admission of the Workload of this owner; False where there is none, nor was taken back."""
        told = ("Evicted", "True", NO_ROOM, sentence)
        if await self._set(namespace, owner_uid, lambda each: each.may_be_evicted, told):
            return True
        found = await self._of(namespace, owner_uid)
        return found is not None and found.was_evicted_for_room

    async def keep_aside(self, namespace: str, owner_uid: str, sentence: str) -> bool:
        """Say once more that it waits for room; False where it does no longer."""
        return await self._set(
            namespace, owner_uid, lambda each: each.waits_for_room, ("Requeued", "False", NO_ROOM, sentence)
        )

    async def requeue(self, namespace: str, owner_uid: str) -> bool:
        """Let Kueue try again what was evicted for want of room; False where it has not put that aside yet."""
        found = await self._of(namespace, owner_uid)
        if found is not None and found.is_being_evicted:
            return False
        await self._set(
            namespace, owner_uid, lambda each: each.waits_for_room, ("Requeued", "True", ROOM_AGAIN, HAS_ROOM)
        )
        return True

    async def forgotten(self, older_than: timedelta) -> AsyncIterator[tuple[str, str]]:
        """Namespace and uid of the owner of Workloads that wait for room, of which nobody has said so for long."""
        before = datetime.now(UTC) - older_than
        async for each in self._in(None):
            told = each.condition("Requeued").get("lastTransitionTime")
            owners = each.metadata.owner_references
            if each.waits_for_room and owners and isinstance(told, str) and datetime.fromisoformat(told) < before:
                yield each.metadata.namespace, owners[0].uid

    async def _set(
        self, namespace: str, owner_uid: str, where: Callable[[KueueWorkload], bool], told: tuple[str, str, str, str]
    ) -> bool:
        """Write one condition into the status that was read, and nothing else."""
        for tries_left in reversed(range(TRIES)):
            found = await self._of(namespace, owner_uid)
            if found is None or not where(found):
                return False
            try:
                await self._write(found, _condition(found, *told))
            except NotFound:
                return False
            except Conflict:
                if not tries_left:
                    raise
            else:
                return True
        return False

    async def _write(self, found: KueueWorkload, condition: Condition) -> None:
        metadata, version = found.metadata, await self._version()
        others = [each for each in found.status.conditions if each.get("type") != condition["type"]]
        place = path(version, PLURAL, metadata.namespace, metadata.name)
        read_version = {"resourceVersion": metadata.resource_version}
        status = {"conditions": [*others, condition]}
        await self._client.patch(f"{place}/status", {"metadata": read_version, "status": status})

    async def _of(self, namespace: str, owner_uid: str) -> KueueWorkload | None:
        async for each in self._in(namespace):
            owners = {owner.uid for owner in each.metadata.owner_references}
            if owner_uid in owners and not each.has_ended:
                return each
        return None

    async def _in(self, namespace: str | None) -> AsyncIterator[KueueWorkload]:
        async for raw in listed_objects(self._client.list_pages(path(await self._version(), PLURAL, namespace))):
            yield read(raw, KueueWorkload)

    async def _version(self) -> str:
        return await self._discovery.api_version(GROUP, PLURAL)


def _condition(found: KueueWorkload, kind: str, status: str, reason: str, message: str) -> Condition:
    return {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": datetime.now(UTC).strftime(RFC_3339),
        "observedGeneration": found.metadata.generation,
    }
