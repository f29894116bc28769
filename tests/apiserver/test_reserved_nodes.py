"""Reservations on real nodes: all nodes of one or none, nobody else's taint or annotation is touched."""

import uuid
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from localcluster import Cluster
from webhook.controllers.reserved_nodes import ReservedNodes
from webhook.kube.client import Client
from webhook.objects.view import view
from webhook.policy.preemption.failures import Failures, failures_on
from webhook.policy.preemption.node_state import FAILURES, RESERVATION, RESERVED, SchedulableNode, node_state
from webhook.policy.preemption.reservation import Reservation, reservation_on

pytestmark = pytest.mark.apiserver

OTHER = {"key": "example.com/repair", "value": "x", "effect": "NoSchedule", "timeAdded": "2026-11-29T06:00:00Z"}
OURS = {"key": RESERVED, "value": "gpu-training", "effect": "NoSchedule"}


@pytest.fixture
def names(cluster: Cluster) -> Iterator[tuple[str, str]]:
    """Two nodes with a taint and an annotation of somebody else."""
    found = f"a-{uuid.uuid4().hex[:8]}", f"b-{uuid.uuid4().hex[:8]}"
    for name in found:
        metadata = {"name": name, "annotations": {"example.com/note": "x"}}
        cluster.api.create({"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": {"taints": [OTHER]}})
    yield found
    cluster.api.delete(*(f"node/{name}" for name in found))


@pytest.fixture
def nodes(client: Client) -> ReservedNodes:
    return ReservedNodes(client, lambda _: None)


def reservation(*nodes: str, gang: str = "one") -> Reservation:
    return Reservation(gang, "team/pod", ("uid",), "gpu-training", nodes, 1.0, 2.0)


def on(cluster: Cluster, name: str) -> Any:
    return node_state(view(cluster.api.get(f"node/{name}"), SchedulableNode))


def own(cluster: Cluster, name: str) -> tuple[list[Any], dict[str, str]]:
    """The taints, without those that controllers add, and the annotations."""
    tree = cluster.api.get(f"node/{name}")
    taints = [each for each in tree["spec"].get("taints", []) if not each["key"].startswith("node.kubernetes.io/")]
    return taints, tree["metadata"]["annotations"]


async def test_a_reservation_comes_and_goes_and_leaves_all_else_alone(
    cluster: Cluster, nodes: ReservedNodes, names: tuple[str, str]
) -> None:
    made = reservation(*names)
    assert await nodes.reserve(made)
    for name in names:
        taints, annotations = own(cluster, name)
        assert taints == [OTHER, OURS]
        assert annotations["example.com/note"] == "x"
        assert reservation_on(on(cluster, name)) == made
    later = replace(made, victims={"low": 5.0})
    assert await nodes.write(made, later)
    assert [reservation_on(on(cluster, name)) for name in names] == [later, made], "steps stand on the first one"
    assert await nodes.end(later)
    for name in names:
        taints, annotations = own(cluster, name)
        assert (taints, annotations.get(RESERVATION)) == ([OTHER], None)
        assert annotations["example.com/note"] == "x"


async def test_all_nodes_are_reserved_or_none(cluster: Cluster, nodes: ReservedNodes, names: tuple[str, str]) -> None:
    first = reservation(names[1], gang="another")
    assert await nodes.reserve(first)
    assert not await nodes.reserve(reservation(*names))
    assert own(cluster, names[0])[0] == [OTHER]
    assert reservation_on(on(cluster, names[1])) == first
    assert not await nodes.reserve(reservation(names[0], "no-such-node"))
    assert own(cluster, names[0])[0] == [OTHER]


async def test_of_another_preemptor_nothing_is_changed(
    cluster: Cluster, nodes: ReservedNodes, names: tuple[str, str]
) -> None:
    first = reservation(names[0], gang="another")
    assert await nodes.reserve(first)
    other = reservation(names[0])
    assert not await nodes.write(other, other)
    assert not await nodes.end(other)
    await nodes.clear(replace(on(cluster, names[0]), reservation="{}"))
    assert reservation_on(on(cluster, names[0])) == first


async def test_one_that_was_taken_off_is_not_written_again(
    cluster: Cluster, nodes: ReservedNodes, names: tuple[str, str]
) -> None:
    """Break-glass: kubectl taint node --all gpu-tiers.dev/reserved-"""
    made = reservation(names[0])
    assert await nodes.reserve(made)
    cluster.kubectl("taint", "node", names[0], f"{RESERVED}-")
    assert not await nodes.write(made, made)
    assert own(cluster, names[0])[0] == [OTHER]


async def test_what_can_not_be_read_is_taken_off(
    cluster: Cluster, nodes: ReservedNodes, names: tuple[str, str]
) -> None:
    cluster.api.annotate(f"node/{names[0]}", {RESERVATION: "garbage"})
    cluster.kubectl("taint", "node", names[0], f"{RESERVED}=gpu-training:NoSchedule")
    assert not await nodes.reserve(reservation(names[0])), "somebody's, until it is cleared"
    await nodes.clear(on(cluster, names[0]))
    taints, annotations = own(cluster, names[0])
    assert (taints, annotations.get(RESERVATION)) == ([OTHER], None)


async def test_an_eviction_in_vain_stays_noted(cluster: Cluster, nodes: ReservedNodes, names: tuple[str, str]) -> None:
    for times in (1, 2):
        assert await nodes.reserve(reservation(names[0]))
        assert await nodes.end(reservation(names[0]), {"one": Failures(times, float(times))})
        assert failures_on(on(cluster, names[0])) == {"one": Failures(times, float(times))}
    assert await nodes.reserve(reservation(names[0], gang="another"))
    assert own(cluster, names[0])[1][FAILURES] == msgspec.json.encode({"one": Failures(2, 2.0)}).decode()


async def test_of_two_leaders_one_takes_each_step(
    cluster: Cluster, nodes: ReservedNodes, names: tuple[str, str]
) -> None:
    """One was paused and doesn't know that it is replaced: it evicts nobody, and ends nothing."""
    made = reservation(*names)
    assert await nodes.reserve(made)
    assert not await nodes.reserve(replace(made, since=1.5)), "the same pod, by the other"
    ours = replace(made, victims={"low": 5.0})
    assert await nodes.write(made, ours)
    assert not await nodes.write(made, replace(made, victims={"high": 5.0}))
    assert not await nodes.end(made)
    assert reservation_on(on(cluster, names[0])) == ours
    assert await nodes.end(ours)


async def test_it_ends_where_its_first_node_is_gone(
    cluster: Cluster, nodes: ReservedNodes, names: tuple[str, str]
) -> None:
    made = reservation(*names)
    assert await nodes.reserve(made)
    cluster.api.delete(f"node/{names[0]}")
    assert await nodes.end(made)
    assert own(cluster, names[1])[0] == [OTHER]


async def test_an_uninstall_ends_all(cluster: Cluster, nodes: ReservedNodes, names: tuple[str, str]) -> None:
    assert await nodes.reserve(reservation(names[0]))
    cluster.kubectl("taint", "node", names[1], f"{RESERVED}=gpu-training:NoSchedule")
    assert await nodes.clear_all() == 2
    for name in names:
        assert own(cluster, name)[0] == [OTHER]
    assert await nodes.clear_all() == 0
