"""Writes reservations on nodes, and removes them: our taint, label and annotations, and nothing else of a node.

Each write is at the resourceVersion that was just read, and is skipped if the node has another reservation than
expected. So a leader that was replaced and does not know it changes nothing. The next step of a reservation is written
on its first node only.
"""

from collections.abc import Callable, Mapping

import msgspec

from webhook.kube.client import Client, listed_objects, path
from webhook.kube.errors import Conflict, NotFound
from webhook.objects.view import Tree, at, listed, mapped, read, view
from webhook.policy.preemption.failures import Failures, failures_on, with_failures
from webhook.policy.preemption.node_state import FAILURES, RESERVATION, RESERVED, NodeState, SchedulableNode, node_state
from webhook.policy.preemption.reservation import Reservation, reservation_on

TRIES = 3
"""Most tries to write a node that changes after it was read."""


class ReservedNodes:
    """`written` gets each node as the API server returns it after a write. All methods raise ApiError."""

    def __init__(self, client: Client, written: Callable[[Tree], None]) -> None:
        self._client = client
        self._written = written

    async def reserve(self, reservation: Reservation) -> bool:
        """Reserve all nodes of a reservation. If one can't be reserved, undo the others and return False."""
        for done, name in enumerate(reservation.nodes):
            # Without the taint a reservation is over, though its annotation may be there yet.
            if not await self._change(name, lambda state: not state.reserved_for, reservation):
                for earlier in reservation.nodes[:done]:
                    await self._change(earlier, _bears(reservation.is_same), None)
                return False
        return True

    async def write(self, before: Reservation, after: Reservation) -> bool:
        """Write the next step of a reservation. Return False if it is not as it was `before`."""

        def is_before(state: NodeState) -> bool:
            return bool(state.reserved_for) and reservation_on(state) == before

        return await self._change(before.nodes[0], is_before, after)

    async def end(
        self,
        reservation: Reservation,
        failed: Mapping[str, Failures] | None = None,
        passed_on: Reservation | None = None,
    ) -> bool:
        """End a reservation that is still as it was, and write the failures `failed` on its first node.

        A reservation that is `passed_on` replaces it on that node. Return False if the reservation has changed.
        """
        first, *others = reservation.nodes
        ended = await self._change(first, _bears(lambda there: there == reservation), passed_on, failed)
        for name in others if ended else ():
            await self._change(name, _bears(reservation.is_same), None)
        return ended

    async def clear(self, node: NodeState) -> None:
        """Remove our marks from a node if they are still those of `node`."""
        there = node.reservation, node.reserved_for
        await self._change(node.name, lambda state: (state.reservation, state.reserved_for) == there, None)

    async def clear_all(self) -> int:
        """Remove our marks from all nodes. Return how many nodes had any."""
        pages, cleared = self._client.list_pages(path("v1", "nodes")), 0
        async for raw in listed_objects(pages):
            node = node_state(read(raw, SchedulableNode))
            if node.is_marked:
                await self._change(node.name, lambda _: True, None)
                cleared += 1
        return cleared

    async def _change(
        self,
        name: str,
        is_due: Callable[[NodeState], bool],
        reservation: Reservation | None,
        failed: Mapping[str, Failures] | None = None,
    ) -> bool:
        """Write a reservation on a node; None removes it. Return False if that is not due.

        A node that is gone has no reservation, so only a removal returns True.
        """
        where = path("v1", "nodes", name=name)
        for left in reversed(range(TRIES)):
            try:
                tree = await self._client.get(where)
                state = node_state(view(tree, SchedulableNode))
                if not is_due(state):
                    return False
                self._written(await self._client.patch(where, _patch(tree, state, reservation, failed or {})))
            except NotFound:
                return reservation is None
            except Conflict:
                if not left:
                    raise
            else:
                return True
        return False


def _bears(is_right: Callable[[Reservation], bool]) -> Callable[[NodeState], bool]:
    """Return a predicate that is True for a node with the right reservation or without one."""
    return lambda state: (there := reservation_on(state)) is None or is_right(there)


def _patch(tree: Tree, state: NodeState, reservation: Reservation | None, failed: Mapping[str, Failures]) -> Tree:
    annotations: dict[str, str | None] = {RESERVATION: None}
    labels: dict[str, str | None] = {RESERVED: reservation.tier if reservation else None}
    taints = [each for each in listed(at(tree, "spec.taints")) if mapped(each).get("key") != RESERVED]
    if reservation is not None:
        annotations[RESERVATION] = msgspec.json.encode(reservation).decode()
        taints.append({"key": RESERVED, "value": reservation.tier, "effect": "NoSchedule"})
    if failed:
        annotations[FAILURES] = msgspec.json.encode(with_failures(failures_on(state), failed)).decode()
    version = at(tree, "metadata.resourceVersion")
    metadata = {"labels": labels, "annotations": annotations, "resourceVersion": version}
    return {"metadata": metadata, "spec": {"taints": taints or None}}
