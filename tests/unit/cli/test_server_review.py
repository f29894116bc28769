"""`gpu-tiers review --server`, with the webhook alone in the place of a cluster."""

import io
from collections.abc import Collection
from typing import Any

import pytest
from rich.console import Console

from tests.builders import Built, a_deployment, a_job, a_pod, a_pytorchjob, a_tenant
from tests.builders.workloads import WorkloadBuilder
from tests.builders.world import World
from tests.unit.admission.test_wrappers import a_wrapper, carried
from webhook.cli.documents import Document
from webhook.cli.dry_run import EXISTS, Reply
from webhook.cli.finding import QUOTA_UNASKED, Finding
from webhook.cli.server_review import ServerDesk
from webhook.cli.show import as_text

Tree = dict[str, Any]


class Asked:
    """Answers a dry run as an API server does. The names of `there` are taken."""

    def __init__(self, world: World, there: Collection[str] = ()) -> None:
        self._world = world
        self._there = there

    async def create(self, tree: Tree, namespace: str) -> Reply:
        """The object as it would be stored, or the refusal."""
        del namespace
        answer = await self._world.create(tree, dryRun=True)
        notes = (EXISTS,) if tree["metadata"].get("name") in self._there else ()
        stored = answer.sent if answer.allowed else None
        return Reply(stored, tuple(answer.warnings), answer.sentence or None, notes=notes)


async def reviewed(workload: Built, world: World, *there: str) -> Finding:
    desk = ServerDesk(Asked(world, there), world.cluster.completed, world.policy)  # type: ignore[arg-type]
    return await desk.finding(Document("work.yaml:1", workload.json()))


def shown_as_text(finding: Finding) -> str:
    out = io.StringIO()
    as_text(finding, Console(file=out))
    return out.getvalue()


@pytest.mark.parametrize(
    ("inner", "tier"),
    [
        (a_pytorchjob(a_pod().asking(), name="llm"), "gpu-training"),
        (a_job(a_pod().asking().running("python", "score.py"), name="score"), "gpu-batch"),
    ],
    ids=["PyTorchJob", "Job"],
)
async def test_the_pods_of_a_job_in_an_app_wrapper_are_let_in(inner: WorkloadBuilder, tier: str) -> None:
    """The Job is stored nowhere, and the AppWrapper neither: the pods tell of both."""
    found = await reviewed(a_wrapper(carried(inner)), World(a_tenant()))
    assert found.message is None
    (pod,) = found.pods
    assert pod.after["spec"]["priorityClassName"] == tier


@pytest.fixture
async def full() -> World:
    """A tenant whose quota is used up, by a gang and by others' pods."""
    world = World(a_tenant().allowing("2"))
    assert (await world.create(a_pod("other").asking(2))).allowed
    return world


RUNNING = [a_pytorchjob(a_pod().asking(), name="ranker", workers=2), a_deployment(a_pod().asking(), name="ranker")]


@pytest.mark.parametrize("workload", RUNNING, ids=["gang", "Deployment"])
async def test_what_runs_already_is_not_refused_for_want_of_room(workload: Built, full: World) -> None:
    """Nor are its pods."""
    assert "asks for" in ((await reviewed(workload, full)).message or "")
    found = await reviewed(workload, full, "ranker")
    assert (found.message, found.notes) == (None, (EXISTS, QUOTA_UNASKED))
    shown = shown_as_text(found)
    assert f"note: {QUOTA_UNASKED}" in shown
    assert "left alone" not in shown


async def test_a_mistake_of_what_runs_already_is_a_refusal_still(full: World) -> None:
    wrong = a_job(a_pod().asking(), name="ranker").of_tier("gold")
    found = await reviewed(wrong, full, "ranker")
    assert "gold" in (found.message or "")
    assert found.notes == (EXISTS,)


async def test_a_resource_quota_of_what_runs_already_is_not_asked_either(full: World) -> None:
    """The sentence is Kubernetes'."""
    said = (
        'by the API server: pods "a-x7k2p" is forbidden: exceeded quota: compute, '
        "requested: requests.nvidia.com/gpu=8, used: requests.nvidia.com/gpu=8, limited: requests.nvidia.com/gpu=8"
    )

    class Full(Asked):
        async def create(self, tree: Tree, namespace: str) -> Reply:
            del tree, namespace
            return Reply(None, (), said, notes=(EXISTS,))

    desk = ServerDesk(Full(full), full.cluster.completed, full.policy)  # type: ignore[arg-type]
    assert (await desk.finding(Document("pod.yaml:1", a_pod("a").asking().json()))).allowed
