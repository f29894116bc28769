"""A pod on a lost node, of a Job that got a podFailurePolicy: nothing replaces it, and that is said before and then.

Then the same for a Job whose pods another cluster runs: it makes none here, and books nothing.
"""

from collections.abc import Iterator

import pytest

from tests.builders.nodes import quiet_node

from .asking import run
from .installed import Installed, gpu_job, gpu_pod

pytestmark = pytest.mark.apiserver

PRICE = (
    "Warning: [lost-node] added podFailurePolicy: pods of a dead node are replaced when you delete the node or taint it"
)


@pytest.fixture
def quiet(installed: Installed, namespace: str) -> Iterator[str]:
    """A node whose kubelet never answers."""
    name = f"quiet-{namespace}"
    assert installed.create(quiet_node(name), namespace).code == 0
    yield name
    installed.api.delete(f"node/{name}")


def test_a_job_waits_for_the_end_of_a_pod_on_a_lost_node(installed: Installed, namespace: str, quiet: str) -> None:
    night = gpu_job("night", 1, quiet)
    night["metadata"]["annotations"] = {"gpu-tiers.dev/checkpoint": "file"}
    night["spec"]["template"]["spec"] |= {"tolerations": [{"operator": "Exists"}], "terminationGracePeriodSeconds": 1}
    created = installed.create(night, namespace)
    assert created.stderr.count(PRICE) == 1, created.stderr
    assert installed.get("job/night", namespace)["spec"]["podReplacementPolicy"] == "Failed"
    pods = ("get", "pods", f"--namespace={namespace}", "--output=jsonpath={.items[*].metadata.name}")

    def bound() -> bool:
        return [each["spec"].get("nodeName") for each in installed.get("pods", namespace)["items"]] == [quiet]

    installed.eventually(bound, "its pod has its node")
    pod = installed.cluster.kubectl(*pods).stdout
    since = "2026-11-21T09:00:00Z"
    lost = {"status": {"conditions": [{"type": "Ready", "status": "Unknown", "lastTransitionTime": since}]}}
    installed.api.patch(f"node/{quiet}", lost, part="status")
    before = run(installed, "why-pending", f"pod/{pod}", f"--namespace={namespace}", "--output=json").stdout
    assert f"It was scheduled to {quiet}, which has not been Ready since {since}." in before
    installed.api.delete(f"pod/{pod}", namespace=namespace, wait=False)

    sentence = (
        f"Pod {pod} is being deleted on node {quiet}, which is not Ready. Its Job has podReplacementPolicy Failed"
    )
    for asked in ("job/night", f"pod/{pod}"):
        answer = run(installed, "why-pending", asked, f"--namespace={namespace}", "--output=json").stdout
        assert sentence in answer, answer
        assert f"kubectl taint nodes {quiet} node.kubernetes.io/out-of-service=nodeshutdown:NoExecute" in answer
    found = run(installed, "lint", "--output=json").stdout
    assert f"Pod/{pod} ends on node {quiet}, which is not Ready; its Job waits for the end" in found
    assert installed.cluster.kubectl(*pods).stdout == pod, "no other pod was made"

    taint = "node.kubernetes.io/out-of-service=nodeshutdown:NoExecute"
    installed.cluster.kubectl("taint", "nodes", quiet, taint)
    assert sentence not in run(installed, "why-pending", "job/night", f"--namespace={namespace}").stdout


def test_a_job_that_runs_in_another_cluster_books_nothing_here_and_frees_no_pod(
    installed: Installed, namespace: str, tenant: str
) -> None:
    elsewhere = gpu_job("elsewhere", 2, managedBy="kueue.x-k8s.io/multikueue", parallelism=4, completions=4)
    assert installed.create(elsewhere, namespace).code == 0
    stored = installed.get("job/elsewhere", namespace)
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "elsewhere", "uid": stored["metadata"]["uid"]}

    def forged(name: str) -> dict[str, object]:
        pod = gpu_pod(name, 2, tier="gpu-training")
        return {**pod, "metadata": {**pod["metadata"], "ownerReferences": [{**owner, "controller": True}]}}

    assert installed.create(forged("first"), namespace).code == 0
    refused = installed.create(forged("second"), namespace)
    assert "the total is at 2 of 2 GPUs" in refused.stderr
    installed.eventually(lambda: installed.usage(tenant) == "total 2/2", "the pod alone is counted")
    sentence = run(installed, "why-pending", "job/elsewhere", f"--namespace={namespace}").stdout
    assert "first" in sentence


def test_a_job_that_runs_in_another_cluster_says_so(installed: Installed, namespace: str, tenant: str) -> None:
    assert tenant
    assert installed.create(gpu_job("away", 8, managedBy="kueue.x-k8s.io/multikueue"), namespace).code == 0
    sentence = run(installed, "why-pending", "job/away", f"--namespace={namespace}").stdout
    assert (
        "kueue.x-k8s.io/multikueue manages it (spec.managedBy), so no controller of this cluster makes its pods."
        in sentence
    )
