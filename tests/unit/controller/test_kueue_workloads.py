"""What is written into the status of Kueue's Workloads, beside Kueue's own writes."""

import json
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from webhook.controller.kueue_workloads import TRIES, KueueWorkloads
from webhook.kube.errors import Conflict, NotFound
from webhook.kube.wire import Page

SENTENCE = "tenant alpha: h100 allows 1 GPU; this Job asks for 3 in all. Would fit: no tier. See TenantQuota/alpha."
LONG_AGO = "2020-01-01T00:00:00Z"

Tree = dict[str, Any]


def a_workload(name: str = "job-work-1", *owners: str, **conditions: str) -> Tree:
    """Conditions as TYPE=STATUS/REASON."""
    told = [
        {"type": kind, "status": said.split("/")[0], "reason": said.split("/")[1], "lastTransitionTime": LONG_AGO}
        for kind, said in conditions.items()
    ]
    references = [{"uid": each, "kind": "Job", "name": "work"} for each in owners or ("uid-1",)]
    metadata = {"name": name, "namespace": "team-alpha", "resourceVersion": "7", "ownerReferences": references}
    return {
        "metadata": metadata | {"generation": 3},
        "status": {"conditions": told, "admission": {"clusterQueue": "q"}},
    }


class Server:
    """Serves Kueue's Workloads; `writers` of others come before so many of ours."""

    def __init__(self, *workloads: Tree, writers: int = 0) -> None:
        self.workloads = list(workloads)
        self.writers = writers
        self.gone = False

    async def get(self, place: str, /) -> Tree:
        if place == "/apis/kueue.x-k8s.io":
            return {"versions": [{"groupVersion": "kueue.x-k8s.io/v1beta2"}]}
        assert place == "/apis/kueue.x-k8s.io/v1beta2"
        return {"resources": [{"name": "workloads"}]}

    async def list_pages(self, place: str, /) -> AsyncIterator[Page]:
        assert place in (
            "/apis/kueue.x-k8s.io/v1beta2/workloads",
            "/apis/kueue.x-k8s.io/v1beta2/namespaces/team-alpha/workloads",
        )
        yield Page(items=[msgspec.Raw(json.dumps(each).encode()) for each in self.workloads])

    async def patch(self, place: str, body: Tree, /) -> Tree:
        name = place.removeprefix("/apis/kueue.x-k8s.io/v1beta2/namespaces/team-alpha/workloads/")
        [found] = [each for each in self.workloads if f"{each['metadata']['name']}/status" == name]
        if self.gone:
            raise NotFound("no such Workload", 404)
        if self.writers:
            self.writers -= 1
            found["metadata"]["resourceVersion"] += "1"
        if body["metadata"]["resourceVersion"] != found["metadata"]["resourceVersion"]:
            raise Conflict("at another resourceVersion", 409)
        found["status"] |= body["status"]
        return found

    def says(self, kind: str, name: str = "job-work-1") -> Tree:
        """A condition; {} where there is none."""
        [found] = [each for each in self.workloads if each["metadata"]["name"] == name]
        return next((each for each in found["status"]["conditions"] if each["type"] == kind), {})


def kueues(server: Server) -> KueueWorkloads:
    return KueueWorkloads(server)  # type: ignore[arg-type]


async def test_an_admission_is_taken_back_with_the_sentence() -> None:
    server = Server(a_workload(QuotaReserved="True/QuotaReserved", Evicted="False/QuotaReserved"))
    assert await kueues(server).evict("team-alpha", "uid-1", SENTENCE)
    evicted = server.says("Evicted")
    assert (evicted["status"], evicted["reason"], evicted["message"]) == ("True", "TenantQuota", SENTENCE)
    assert evicted["observedGeneration"] == 3
    assert server.says("QuotaReserved") == a_workload(QuotaReserved="True/QuotaReserved")["status"]["conditions"][0]
    assert server.workloads[0]["status"]["admission"] == {"clusterQueue": "q"}, "that is Kueue's to take"


@pytest.mark.parametrize(
    "workload",
    [
        a_workload(QuotaReserved="False/Pending"),
        a_workload(QuotaReserved="True/QuotaReserved", Evicted="True/Preempted"),
        a_workload(QuotaReserved="True/QuotaReserved", Finished="True/Succeeded"),
        a_workload("another", "uid-2", QuotaReserved="True/QuotaReserved"),
    ],
    ids=["pending", "preempted", "finished", "another's"],
)
async def test_what_holds_no_quota_is_left_alone(workload: Tree) -> None:
    server = Server(workload)
    before = json.dumps(server.workloads)
    assert not await kueues(server).evict("team-alpha", "uid-1", SENTENCE)
    assert json.dumps(server.workloads) == before


async def test_what_we_evicted_already_is_not_written_again() -> None:
    """Kueue's next try was under way when it was evicted."""
    server = Server(a_workload(QuotaReserved="False/Pending", Evicted="True/TenantQuota", Requeued="False/TenantQuota"))
    before = json.dumps(server.workloads)
    assert await kueues(server).evict("team-alpha", "uid-1", SENTENCE)
    assert json.dumps(server.workloads) == before


async def test_kueue_writes_at_the_same_time() -> None:
    server = Server(a_workload(QuotaReserved="True/QuotaReserved"), writers=TRIES - 1)
    assert await kueues(server).evict("team-alpha", "uid-1", SENTENCE)
    busy = Server(a_workload(QuotaReserved="True/QuotaReserved"), writers=TRIES)
    with pytest.raises(Conflict):
        await kueues(busy).evict("team-alpha", "uid-1", SENTENCE)


async def test_a_workload_that_goes_meanwhile_needs_nothing() -> None:
    server = Server(a_workload(QuotaReserved="True/QuotaReserved"))
    server.gone = True
    assert not await kueues(server).evict("team-alpha", "uid-1", SENTENCE)


async def test_a_group_of_pods_is_found_by_each_of_them() -> None:
    server = Server(a_workload("sweep", "uid-1", "uid-2", QuotaReserved="True/QuotaReserved"))
    assert await kueues(server).evict("team-alpha", "uid-2", SENTENCE)


async def test_kueue_may_try_again_what_we_put_aside_and_nothing_else() -> None:
    ours = a_workload(QuotaReserved="False/Pending", Requeued="False/TenantQuota")
    others = a_workload("another", "uid-2", QuotaReserved="False/Pending", Requeued="False/PodsReadyTimeout")
    server = Server(ours, others)
    for uid in ("uid-1", "uid-2", "uid-of-one-that-is-gone"):
        assert await kueues(server).requeue("team-alpha", uid)
    requeued, left = server.says("Requeued"), server.says("Requeued", "another")
    assert (requeued["status"], requeued["reason"]) == ("True", "TenantQuotaHasRoom")
    assert left["status"] == "False"


async def test_kueue_has_not_put_it_aside_yet() -> None:
    server = Server(a_workload(QuotaReserved="True/QuotaReserved", Evicted="True/TenantQuota"))
    assert not await kueues(server).requeue("team-alpha", "uid-1")


async def test_what_nobody_has_spoken_of_for_long_is_forgotten() -> None:
    server = Server(
        a_workload("one", "uid-1", Requeued="False/TenantQuota"),
        a_workload("two", "uid-2", Requeued="False/TenantQuota"),
        a_workload("three", "uid-3", Requeued="True/TenantQuotaHasRoom"),
    )
    found = kueues(server)
    assert await found.keep_aside("team-alpha", "uid-2", SENTENCE)
    assert [each async for each in found.forgotten(timedelta(minutes=6))] == [("team-alpha", "uid-1")]
