"""The webhook is dead and the mode is Enforce: a Job still finishes. It comes back: the ledger knows what runs."""

import pytest

from .installed import Installed, gpu_pod

pytestmark = pytest.mark.apiserver


def test_a_job_finishes_while_it_is_dead(installed: Installed, namespace: str) -> None:
    node = f"node-{namespace}"
    installed.cluster.add_node(node, gpus=1)
    template = gpu_pod("x", 1, tier="gpu-batch", node=node, restartPolicy="Never")
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "score"},
        "spec": {"template": {"metadata": template["metadata"] | {"name": None}, "spec": template["spec"]}},
    }
    try:
        assert installed.create(job, namespace).code == 0
        pods = lambda: installed.get("pods", namespace)["items"]  # noqa: E731
        installed.eventually(lambda: [each["status"]["phase"] for each in pods()] == ["Running"], "the job's pod")
        installed.kill()
        try:
            # the Job controller takes its finalizer off the pod: an UPDATE that a Fail webhook must never block
            (pod,) = pods()
            completes = {"localcluster.gpu-tiers.dev/completes": "true"}
            installed.api.annotate(f"pod/{pod['metadata']['name']}", completes, namespace)
            installed.api.wait_for("Complete", "job/score", namespace=namespace)
        finally:
            installed.restart()
    finally:
        installed.api.delete(f"node/{node}")


def test_the_ledger_comes_back_with_the_pods_that_exist(installed: Installed, namespace: str) -> None:
    installed.tenant("omega", namespace, quotas=[{"gpus": "3"}])
    try:
        assert installed.create(gpu_pod("two", 2), namespace).code == 0
        installed.change_leader()
        refused = installed.create(gpu_pod("two-more", 2), namespace)
        assert "the total is at 2 of 3 GPUs; this pod asks for 2" in refused.stderr
    finally:
        installed.api.delete("tenantquota/omega")
