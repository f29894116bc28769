"""A namespace made a moment ago, which the watch has yet to bring: its pods are its tenant's from the first one on."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from decimal import Decimal
from typing import cast

import pytest

from tests.builders import PodBuilder, a_pod, a_policy, a_tenant, live_classes
from tests.builders.counted_ledger import CountedLedger
from tests.builders.world import Answer, FakeApi
from tests.unit.cluster.lagging import LaggingApi, Tree
from webhook.admission.webhook import Webhooks
from webhook.cluster.live import LiveCluster, live_cluster
from webhook.kube.client import Client
from webhook.objects.refusal import Unreadable

POLICY = a_policy()
ALPHA = a_tenant(namespaceSelector={"matchLabels": {"team": "a"}}).allowing(1)
NEW: Tree = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "brand-new", "labels": {"team": "a"}}}


def listed() -> dict[str, list[Tree]]:
    classes = [
        {"metadata": {"name": each.name}, "value": each.value, "preemptionPolicy": each.preemption_policy}
        for each in live_classes(POLICY).values()
    ]
    return {
        "/apis/scheduling.k8s.io/v1/priorityclasses": classes,
        "/apis/gpu-tiers.dev/v1alpha1/tenantquotas": [ALPHA.json()],
    }


@dataclass
class Lagging:
    """Our webhooks and ledger on a cluster whose watch lags."""

    api: LaggingApi
    cluster: LiveCluster

    def __post_init__(self) -> None:
        self.live = self.cluster.known
        self.world = FakeApi(policy=POLICY)
        self.ledger = CountedLedger(lambda: 0.0, self.live.tenant_name)
        self.world.webhooks = Webhooks(self.cluster, self.ledger, lambda: POLICY, lambda *_: None)

    async def create(self, pod: PodBuilder) -> Answer:
        return await self.world.create(pod.json(), namespace="brand-new")

    def used(self) -> Decimal:
        (row,) = ALPHA.view().rows
        return self.ledger.usage(ALPHA.view())[row]


@pytest.fixture
async def lagging() -> AsyncIterator[Lagging]:
    api = LaggingApi(listed())
    async with live_cluster(cast("Client", api)) as cluster:
        await cluster.known.wait_synced()
        yield Lagging(api, cluster)


def one_gpu(name: str) -> PodBuilder:
    return a_pod(name, namespace="brand-new").asking(1)


async def test_the_second_of_two_pods_in_a_brand_new_namespace_is_over_quota(lagging: Lagging) -> None:
    lagging.api.make(NEW)
    assert (await lagging.create(one_gpu("first"))).allowed
    assert lagging.used() == 1
    second = await lagging.create(one_gpu("second"))
    assert not second.allowed
    assert "the total is at 1 of 1 GPU;" in second.sentence
    await lagging.api.bring("ADDED", NEW)
    assert [each.name for each in lagging.live.namespaces()] == ["brand-new"]
    assert lagging.used() == 1
    assert not (await lagging.create(one_gpu("third"))).allowed
    assert {each for each in lagging.api.reads if "/pods/" not in each} == {"/api/v1/namespaces/brand-new"}


async def test_what_the_watch_brings_is_believed_over_what_was_looked_up(lagging: Lagging) -> None:
    lagging.api.make(NEW)
    await lagging.create(one_gpu("first"))
    moved = {**NEW, "metadata": {"name": "brand-new", "labels": {"team": "b"}}}
    await lagging.api.bring("ADDED", moved)
    assert (lagging.live.tenant_name("brand-new"), lagging.used()) == (None, 0)
    assert (await lagging.live.namespace("brand-new")).labels == {"team": "b"}


async def test_a_namespace_that_the_watch_deletes_is_nobodys(lagging: Lagging) -> None:
    lagging.api.make(NEW)
    home = await lagging.live.namespace("brand-new")
    assert lagging.live.tenant(home).name == lagging.live.tenant_name("brand-new") == "alpha"
    lagging.api.delete(NEW)
    await lagging.api.bring("ADDED", NEW)
    await lagging.api.bring("DELETED", NEW)
    assert lagging.live.tenant_name("brand-new") is None


async def test_what_is_not_there_is_reported_and_nobodys(lagging: Lagging) -> None:
    with pytest.raises(Unreadable, match=r"^namespace brand-new does not exist$"):
        await lagging.live.namespace("brand-new")
    assert lagging.live.tenant_name("brand-new") is None
    lagging.api.make(NEW)
    await lagging.live.namespace("brand-new")
    assert lagging.live.tenant_name("brand-new") == "alpha"
