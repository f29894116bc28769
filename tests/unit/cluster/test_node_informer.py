"""Labels of nodes: only those that tell flavors, only while there are such, and news only where one changed."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, cast

from tests.unit.cluster.lagging import LaggingApi
from webhook.cluster.watched import NodeInformer
from webhook.kube.client import Client

NODES = "/api/v1/nodes"
PRODUCT = "nvidia.com/gpu.product"


def node(name: str, labels: Mapping[str, str]) -> dict[str, Any]:
    return {"metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **labels}}}


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not holds():  # noqa: ASYNC110 - the watch has no event
            await asyncio.sleep(0)


async def test_nodes_are_known_by_the_labels_of_flavors() -> None:
    api = LaggingApi({NODES: [node("h100-0", {PRODUCT: "H100", "zone": "b"}), node("cpu-0", {"zone": "b"})]})
    nodes, names = NodeInformer(cast("Client", api)), list[str]()
    nodes.subscribe(names.append)
    async with asyncio.timeout(60):
        nodes.follow({PRODUCT})
        await nodes.wait_synced()
        assert (nodes.labels("h100-0"), nodes.labels("cpu-0")) == ({PRODUCT: "H100"}, {})
        await until(lambda: len(names) == 2)
        names.clear()
        await api.bring("MODIFIED", node("h100-0", {PRODUCT: "H100", "zone": "c"}), NODES)
        assert names == [], "a heartbeat is no news"
        await api.bring("MODIFIED", node("cpu-0", {PRODUCT: "A100"}), NODES)
        assert (names, nodes.labels("cpu-0")) == (["cpu-0"], {PRODUCT: "A100"})
        await api.bring("DELETED", node("cpu-0", {PRODUCT: "A100"}), NODES)
        assert nodes.labels("cpu-0") is None
        nodes.follow(set())
        assert nodes.labels("h100-0") is None
        nodes.follow({"zone"})
        await until(lambda: nodes.labels("h100-0") == {"zone": "b"})
        assert nodes.labels("cpu-0") == {"zone": "b"}
        nodes.follow({"zone", PRODUCT})
        await until(lambda: nodes.labels("h100-0") == {"zone": "b", PRODUCT: "H100"})
    await nodes.stop()


async def test_a_policy_without_flavors_reads_no_nodes() -> None:
    api = LaggingApi({})
    nodes = NodeInformer(cast("Client", api))
    nodes.follow(set())
    await asyncio.sleep(0.01)
    assert not nodes.synced
    assert nodes.problems() == []
    await nodes.stop()


async def test_what_device_plugins_have_is_known_by_the_resources_that_are_followed() -> None:
    def with_plugin(name: str, **allocatable: str) -> dict[str, Any]:
        return {"metadata": {"name": name}, "status": {"allocatable": {"cpu": "8", **allocatable}}}

    gpu, other = "example.com/gpu", "example.com/nic"
    api = LaggingApi({NODES: [with_plugin("a", **{gpu: "4", other: "1"}), with_plugin("b", **{gpu: "0"})]})
    plugins = NodeInformer(cast("Client", api), plugins=True)
    assert plugins.there is None, "nothing is known yet"
    async with asyncio.timeout(60):
        plugins.follow({gpu})
        await plugins.wait_synced()
        assert plugins.there == {gpu}
        await api.bring("MODIFIED", with_plugin("a", **{gpu: "0"}), NODES)
        assert plugins.there == frozenset(), "none of them is healthy"
        await api.bring("MODIFIED", with_plugin("b", **{gpu: "1"}), NODES)
        assert plugins.there == {gpu}
        await api.bring("DELETED", with_plugin("b"), NODES)
        assert plugins.there == frozenset()
        plugins.follow({gpu, other})
        assert plugins.there is None, "the nodes are read again, by these keys"
        await until(lambda: plugins.there == {gpu, other})
    await plugins.stop()
