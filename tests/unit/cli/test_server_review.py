"""`gpu-tiers review --server`, with the webhook alone in the place of a cluster."""

from typing import Any

import pytest

from tests.builders import a_job, a_pod, a_pytorchjob, a_tenant
from tests.builders.workloads import WorkloadBuilder
from tests.builders.world import World
from tests.unit.admission.test_wrappers import a_wrapper, carried
from webhook.cli.documents import Document
from webhook.cli.dry_run import Reply
from webhook.cli.finding import Finding
from webhook.cli.server_review import ServerDesk

Tree = dict[str, Any]


class Asked:
    """Answers a dry run as an API server does; what it says of an object holds for no other."""

    def __init__(self, world: World) -> None:
        self._world = world

    async def create(self, tree: Tree, namespace: str) -> Reply:
        """The object as it would be stored, or the refusal."""
        del namespace
        answer = await self._world.create(tree, dryRun=True)
        return Reply(answer.sent if answer.allowed else None, tuple(answer.warnings), answer.sentence or None)


async def reviewed(workload: WorkloadBuilder, *objects: Any) -> Finding:
    world = World(*objects)
    desk = ServerDesk(Asked(world), world.cluster.completed, world.policy)  # type: ignore[arg-type]
    return await desk.finding(Document("work.yaml:1", workload.json()))


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
    found = await reviewed(a_wrapper(carried(inner)), a_tenant())
    assert found.message is None
    (pod,) = found.pods
    assert pod.after["spec"]["priorityClassName"] == tier
