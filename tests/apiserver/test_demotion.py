"""onExceed: Demote lends idle GPUs: lent to whoever is over its quota, taken back by their owner, and given again."""

from collections.abc import Iterator

import pytest

from .asking import events, run
from .installed import Installed, Tree, gpu_pod

pytestmark = pytest.mark.apiserver


@pytest.fixture
def tenants(installed: Installed, namespace: str) -> Iterator[tuple[str, str]]:
    """The owner of 3 GPUs for training, and a borrower with 1, in namespaces of their own."""
    lender = f"{namespace}-lender"
    installed.api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": lender}})
    installed.tenant("lender", lender, quotas=[{"tier": "gpu-training", "gpus": 3}])
    rows = [{"tier": "gpu-training", "gpus": 1}, {"tier": "gpu-batch", "gpus": 3}]
    tiers = ["gpu-training", "gpu-batch"]
    installed.tenant("borrower", namespace, allowedTiers=tiers, quotas=rows, onExceed="Demote")
    yield lender, namespace
    installed.api.delete("tenantquota/lender", "tenantquota/borrower")
    installed.api.delete(f"namespace/{lender}", wait=False)


def training(name: str, gpus: int, node: str) -> Tree:
    """A training Job of one pod, which an eviction does not fail."""
    pod = gpu_pod("", gpus, tier="gpu-training", node=node, restartPolicy="Never")
    disrupted = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}
    template = {"metadata": {"labels": pod["metadata"]["labels"]}, "spec": pod["spec"]}
    spec = {"template": template, "podFailurePolicy": {"rules": [disrupted]}}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": spec}


def pods_of(installed: Installed, namespace: str, job: str) -> list[Tree]:
    items: list[Tree] = installed.get("pods", namespace)["items"]
    return [each for each in items if each["metadata"]["labels"].get("batch.kubernetes.io/job-name") == job]


def runs(installed: Installed, namespace: str, job: str) -> bool:
    return [each["status"]["phase"] for each in pods_of(installed, namespace, job)] == ["Running"]


def waits(installed: Installed, namespace: str, job: str) -> bool:
    return [each["status"]["phase"] for each in pods_of(installed, namespace, job)] == ["Pending"]


def test_lent_taken_back_and_given_again(installed: Installed, tenants: tuple[str, str], node: str) -> None:
    """The steps are those of docs/lending.md."""
    lender, borrower = tenants
    assert installed.create(training("within", 1, node), borrower).code == 0
    installed.eventually(lambda: runs(installed, borrower, "within"), "what is within its quota")
    lent = installed.create(training("finetune", 3, node), borrower).stderr
    assert "gpu-training is at 1 of 1 GPU; this Job asks for 3 in all: pods that have no room there " in lent
    assert "run as gpu-batch, which gpu-training, gpu-serving may evict" in lent
    installed.eventually(lambda: runs(installed, borrower, "finetune"), "the lent GPUs in use")
    (pod,) = pods_of(installed, borrower, "finetune")
    assert (pod["spec"]["priorityClassName"], pod["spec"]["priority"]) == ("gpu-batch", 400)
    assert pod["metadata"]["annotations"]["gpu-tiers.dev/assigned-by"].endswith(
        "demoted from gpu-training to gpu-batch"
    )
    installed.eventually(lambda: installed.usage("borrower") == "gpu-training 1/1, gpu-batch 3/3", "its usage")
    runs_lower = "it runs as gpu-batch, which gpu-training, gpu-serving may evict"
    sentences = {"finetune": f"tenant borrower has no room for it in gpu-training: {runs_lower}"}
    installed.eventually(lambda: events(installed, borrower, "Demoted") == sentences, "an event on the Job")
    explained = run(installed, "explain", pod["metadata"]["name"], f"--namespace={borrower}").stdout
    assert "tier         gpu-batch\n" in explained
    assert "; demoted from gpu-training to gpu-batch\n" in explained

    assert installed.create(training("pretrain", 3, node), lender).code == 0
    installed.eventually(lambda: runs(installed, lender, "pretrain"), "the owner's training")
    (owners,) = pods_of(installed, lender, "pretrain")
    evicted = {pod["metadata"]["name"]: f"Preempted by pod {owners['metadata']['uid']} on node {node}"}
    installed.eventually(lambda: events(installed, borrower, "Preempted") == evicted, "the scheduler's event")
    assert runs(installed, borrower, "within")

    installed.eventually(lambda: waits(installed, borrower, "finetune"), "its next pod, which waits for idle GPUs")
    completes = ("annotate", "pod", owners["metadata"]["name"], "localcluster.gpu-tiers.dev/completes=true")
    installed.cluster.kubectl(*completes, f"--namespace={lender}")
    installed.eventually(lambda: runs(installed, borrower, "finetune"), "the GPUs given again")
    assert [pod["spec"]["priorityClassName"] for pod in pods_of(installed, borrower, "finetune")] == ["gpu-batch"]
    installed.eventually(lambda: installed.usage("borrower") == "gpu-training 1/1, gpu-batch 3/3", "its usage")


def test_a_tenant_says_where_it_borrows(installed: Installed, namespace: str) -> None:
    """Without its list training would borrow as gpu-batch, whose pods may evict notebooks."""
    rows = [{"tier": "gpu-training", "gpus": 0}, {"gpus": 2}]
    name, lists = f"of-{namespace}", ["gpu-interactive"]
    with installed.tenant_for(name, namespace, quotas=rows, onExceed="Demote", demoteTo=lists):
        answer = installed.create(gpu_pod("lent", 1, tier="gpu-training"), namespace)
        assert "this pod runs as gpu-interactive" in answer.stderr
        assert installed.get("pod/lent", namespace)["spec"]["preemptionPolicy"] == "Never"
        patch = '{"spec":{"demoteTo":["gpu-training"]}}'
        command = ("patch", "tenantquota", name, "--type=merge", f"--patch={patch}")
        sentences = installed.cluster.kubectl(*command).stderr
        assert "[demotes-nowhere]" in sentences
        broken = installed.cluster.kubectl(*command[:-1], '--patch={"spec":{"onExceed":"Deny"}}', check=False).stderr
        assert "demoteTo is for pods that are demoted; write onExceed: Demote, or leave it out" in broken
