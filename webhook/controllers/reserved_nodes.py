"""Writes reservations on nodes, and takes them off: our taint and our annotations, and nothing else of a node.

Each write is of the node as it was just read. A node that is reserved for another preemptor is left as it is.
"""

from collections.abc import Callable

import msgspec

from webhook.kube.client import Client, listed_objects, path
from webhook.kube.errors import Conflict, NotFound
from webhook.objects.view import Tree, at, listed, mapped, read, view
from webhook.policy.preemption.node_state import (
    FAILURES,
    RESERVATION,
    RESERVED,
    NodeState,
    SchedulableNode,
    node_state,
)
from webhook.policy.preemption.reservation import Failures, Reservation, failures_on, reservation_on

TRIES = 3
"""Writes of a node that has changed since it was read."""


class ReservedNodes:
    """`written` hears of each node as it is after a write. All methods raise ApiError."""

    def __init__(self, client: Client, written: Callable[[Tree], None]) -> None:
        self._client = client
        self._written = written

    async def reserve(self, reservation: Reservation) -> bool:
        """Reserve all of its nodes, or none."""
        for done, name in enumerate(reservation.nodes):
            if not await self._put(name, reservation):
                for earlier in reservation.nodes[:done]:
                    await self._take_off(earlier, reservation.gang)
                return False
        return True

    async def write(self, reservation: Reservation) -> bool:
        """Write what has changed of a reservation; False where one of its nodes bears it no more."""
        return all([await self._put(name, reservation, again=True) for name in reservation.nodes])

    async def end(self, reservation: Reservation, failed_at: float | None = None) -> None:
        """End a reservation. `failed_at` is when the preemption failed."""
        for name in reservation.nodes:
            await self._take_off(name, reservation.gang, failed_at)

    async def clear(self, name: str) -> None:
        """Take off a reservation that can't be read."""
        await self._take_off(name, None)

    async def clear_all(self) -> int:
        """Take off all reservations, whoever they are for; return how many nodes had one."""
        pages, cleared = self._client.list_pages(path("v1", "nodes")), 0
        async for raw in listed_objects(pages):
            node = node_state(read(raw, SchedulableNode))
            if node.reserved_for or node.reservation:
                there = reservation_on(node)
                await self._take_off(node.name, there.gang if there else None)
                cleared += 1
        return cleared

    async def _put(self, name: str, reservation: Reservation, *, again: bool = False) -> bool:
        def change(tree: Tree, state: NodeState) -> Tree | None:
            there = reservation_on(state) if state.reserved_for else None
            if (there.gang != reservation.gang if there else again) or (state.reserved_for and there is None):
                return None
            annotations = {RESERVATION: msgspec.json.encode(reservation).decode()}
            taint = {"key": RESERVED, "value": reservation.tier, "effect": "NoSchedule"}
            return {"metadata": {"annotations": annotations}, "spec": {"taints": [*_others(tree), taint]}}

        return await self._change(name, change)

    async def _take_off(self, name: str, gang: str | None, failed_at: float | None = None) -> None:
        def change(tree: Tree, state: NodeState) -> Tree | None:
            there = reservation_on(state)
            if there is not None and there.gang != gang:
                return None
            annotations: dict[str, str | None] = {RESERVATION: None}
            if failed_at is not None and gang is not None:
                known = failures_on(state)
                count = known[gang].count + 1 if gang in known else 1
                more = {**known, gang: Failures(count, failed_at)}
                annotations[FAILURES] = msgspec.json.encode(more).decode()
            return {"metadata": {"annotations": annotations}, "spec": {"taints": _others(tree) or None}}

        await self._change(name, change)

    async def _change(self, name: str, change: Callable[[Tree, NodeState], Tree | None]) -> bool:
        """Patch a node as it is now; False where there is nothing to change, or no node."""
        where = path("v1", "nodes", name=name)
        for left in reversed(range(TRIES)):
            try:
                tree = await self._client.get(where)
                patch = change(tree, node_state(view(tree, SchedulableNode)))
                if patch is None:
                    return False
                version = at(tree, "metadata.resourceVersion")
                patch["metadata"] = {**patch["metadata"], "resourceVersion": version}
                self._written(await self._client.patch(where, patch))
            except NotFound:
                return False
            except Conflict:
                if not left:
                    raise
            else:
                return True
        return False


def _others(tree: Tree) -> list[Tree]:
    """Return the taints of others, whole."""
    return [each for each in listed(at(tree, "spec.taints")) if mapped(each).get("key") != RESERVED]
