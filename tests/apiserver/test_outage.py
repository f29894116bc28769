"""The webhook is dead and the mode is Enforce: what still goes on, and what a person reads who needs a GPU."""

from collections.abc import Iterator

import pytest

from .installed import Installed, gpu_pod

pytestmark = pytest.mark.apiserver


@pytest.fixture
def dead(installed: Installed) -> Iterator[Installed]:
    """The webhook killed, and started again afterwards."""
    installed.kill()
    yield installed
    installed.restart()


def test_only_gpu_pods_notice(dead: Installed, namespace: str) -> None:
    refused = dead.create(gpu_pod("training", tier="gpu-training"), namespace)
    assert refused.code == 1
    assert 'failed calling webhook "pods.validate.gpu-tiers.dev"' in refused.stderr

    coredns = gpu_pod("coredns", 0)
    assert dead.create(coredns, namespace).code == 0
    addon = ("pod/addon", "--namespace=kube-system", "--grace-period=0", "--force")
    assert dead.create(gpu_pod("addon"), "kube-system").code == 0  # exempt, GPUs or not
    dead.cluster.kubectl("delete", *addon)
    here = f"--namespace={namespace}"
    assert dead.cluster.kubectl("label", "pod/coredns", "team=infra", here, check=False).code == 0
    dead.cluster.kubectl(
        "patch", "pod/coredns", here, "--type=merge", '-p={"metadata":{"finalizers":["example.com/x"]}}'
    )
    dead.cluster.kubectl("delete", "pod/coredns", here, "--wait=false", "--grace-period=0", "--force")
    dead.cluster.kubectl("patch", "pod/coredns", here, "--type=merge", '-p={"metadata":{"finalizers":null}}')
    dead.cluster.kubectl("wait", "--for=delete", "pod/coredns", here, "--timeout=30s")


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
        selector = ("pods", f"--namespace={namespace}", "-l=batch.kubernetes.io/job-name=score")
        running = lambda: "Running" in installed.cluster.kubectl("get", *selector).stdout  # noqa: E731
        installed.eventually(running, "the job's pod")
        installed.kill()
        try:
            # the Job controller takes its finalizer off the pod: an UPDATE that a Fail webhook must never block
            installed.cluster.kubectl("annotate", *selector, "localcluster.gpu-tiers.dev/completes=true")
            installed.cluster.kubectl(
                "wait", "--for=condition=Complete", "job/score", f"--namespace={namespace}", "--timeout=30s"
            )
        finally:
            installed.restart()
    finally:
        installed.cluster.kubectl("delete", "node", node)


def test_the_ledger_comes_back_with_the_pods_that_exist(installed: Installed, namespace: str) -> None:
    installed.tenant("omega", namespace, quotas=[{"gpus": "3"}])
    try:
        assert installed.create(gpu_pod("two", 2), namespace).code == 0
        installed.kill()
        installed.restart()
        refused = installed.create(gpu_pod("two-more", 2), namespace)
        assert "the total is at 2 of 3 GPUs; this pod asks for 2" in refused.stderr
    finally:
        installed.cluster.kubectl("delete", "tenantquota", "omega")
