"""What why-pending says of a pod whose node is not Ready, before Kubernetes deletes it and after."""

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from tests.builders import a_policy
from webhook.cli.manifests.documents import Document
from webhook.cli.why_pending.lost_pods import running_on_lost_nodes
from webhook.cli.why_pending.reasons import pod_waits
from webhook.kube.errors import Forbidden
from webhook.objects.view import Tree

NOW = datetime(2026, 11, 21, 9, 2, tzinfo=UTC)
LOST = {"type": "Ready", "status": "Unknown", "lastTransitionTime": "2026-11-21T09:00:00Z"}
READY = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-11-20T09:00:00Z"}
OFF = {"key": "node.kubernetes.io/out-of-service", "effect": "NoExecute"}
UNREACHABLE = {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute"}


class Nodes:
    """An API server with the node gpu-0, which nobody may read if it has no condition."""

    def __init__(self, condition: Tree | None, *taints: Tree) -> None:
        self._condition, self._taints = condition, taints

    async def get(self, place: str) -> Tree:
        assert place == "/api/v1/nodes/gpu-0"
        if self._condition is None:
            raise Forbidden("HTTP 403", 403, "", path=place)
        return {"spec": {"taints": [*self._taints]}, "status": {"conditions": [self._condition]}}


def asked(condition: Tree | None, *taints: Tree) -> Any:
    return SimpleNamespace(policy=a_policy(), reader=SimpleNamespace(client=Nodes(condition, *taints)))


def a_pod(*tolerations: Tree, phase: str = "Running", **metadata: Any) -> Tree:
    spec = {"nodeName": "gpu-0", "tolerations": [*tolerations]}
    metadata = {"name": "web-0", "namespace": "alpha", **metadata}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": {"phase": phase}}


async def said(pod: Tree, condition: Tree | None = LOST, *taints: Tree) -> str:
    found = await pod_waits(asked(condition, *taints), Document("the cluster", pod), NOW)
    return " ".join(found.sentences)


@pytest.mark.parametrize("condition", [READY, None])
async def test_a_pod_runs_on_a_node_that_is_ready_or_that_nobody_may_read(condition: Tree | None) -> None:
    assert await said(a_pod(), condition) == "It runs on gpu-0."


@pytest.mark.parametrize(("phase", "was"), [("Running", "running on"), ("Pending", "scheduled to")])
async def test_a_pod_on_a_lost_node_is_said_to_have_run_and_when_it_is_deleted(phase: str, was: str) -> None:
    default = UNREACHABLE | {"tolerationSeconds": 300}
    sentences = await said(a_pod(default, phase=phase))
    assert sentences.startswith(f"It was {was} gpu-0, which has not been Ready since 2026-11-21T09:00:00Z.")
    assert "Kubernetes deletes the pod at about 2026-11-21T09:05:00Z" in sentences
    assert "Only if the machine is really off: kubectl taint nodes gpu-0 " in sentences
    assert sentences.endswith("remove the taint when the machine is back.")


@pytest.mark.parametrize(
    ("tolerations", "next_"),
    [((UNREACHABLE,), "Its tolerations keep it there"), ((), "at about 2026-11-21T09:00:00Z")],
)
async def test_its_tolerations_decide_when_it_is_deleted(tolerations: tuple[Tree, ...], next_: str) -> None:
    assert next_ in await said(a_pod(*tolerations))


async def test_a_pod_that_is_deleted_on_a_lost_node_ends_at_no_known_time() -> None:
    sentences = await said(a_pod(deletionTimestamp="2026-11-21T09:01:00Z"))
    assert sentences.startswith(
        "It is being deleted on gpu-0, which has not been Ready since 2026-11-21T09:00:00Z. It ends only when the node"
    )
    assert "ended by" not in sentences
    assert "machine" not in await said(a_pod(deletionTimestamp="2026-11-21T09:01:00Z"), LOST, OFF), "it was said"


async def test_of_a_workload_the_pods_on_lost_nodes_do_not_count_as_running() -> None:
    assert list(await running_on_lost_nodes(asked(LOST), [a_pod()])) == ["web-0"]
    assert await running_on_lost_nodes(asked(READY), [a_pod()]) == {}
