"""A reservation ends at its time, whatever else the leader is told: no node stays closed because a watch is broken."""

import asyncio
import time
import uuid
from collections.abc import Iterator
from unittest.mock import Mock

import pytest
from msgspec.structs import replace

from localcluster import Cluster
from tests.builders.policies import a_policy
from webhook.cluster.scheduling_view import SchedulingView
from webhook.controllers import device_preemption
from webhook.controllers.device_preemption import DevicePreemption
from webhook.controllers.reserved_nodes import ReservedNodes
from webhook.kube.client import Client
from webhook.policy.preemption.node_state import RESERVED
from webhook.policy.preemption.reservation import Reservation

pytestmark = pytest.mark.apiserver


class Broken(SchedulingView):
    """One of its watches fails."""

    def problems(self) -> list[str]:
        return ["GET /api/v1/pods: HTTP 403"]


@pytest.fixture
def names(cluster: Cluster) -> Iterator[tuple[str, str]]:
    found = f"a-{uuid.uuid4().hex[:8]}", f"b-{uuid.uuid4().hex[:8]}"
    for name in found:
        cluster.api.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}})
    yield found
    cluster.api.delete(*(f"node/{name}" for name in found))


async def test_where_a_watch_is_broken(
    cluster: Cluster, client: Client, names: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    over, open_still = (Reservation(name, f"team/{name}", (name,), "gpu-training", (name,), 1.0, 2.0) for name in names)
    nodes = ReservedNodes(client, lambda _: None)
    assert await nodes.reserve(over)
    assert await nodes.reserve(replace(open_still, until=time.time() + 600))
    monkeypatch.setattr(device_preemption, "SchedulingView", Broken)
    preempting = DevicePreemption(
        client,
        Mock(),
        lambda: a_policy(preemption={"dra": "On"}),
        lambda: True,
        list,
        dict,
        Mock(),
        frozenset(),
        Mock(),
    )
    running = asyncio.create_task(preempting.run())
    try:
        async with asyncio.timeout(120):
            while is_reserved(cluster, names[0]):  # noqa: ASYNC110 - nobody tells
                await asyncio.sleep(0.1)
    finally:
        running.cancel()
    assert is_reserved(cluster, names[1])


def is_reserved(cluster: Cluster, name: str) -> bool:
    return any(each["key"] == RESERVED for each in cluster.api.get(f"node/{name}")["spec"].get("taints", ()))
