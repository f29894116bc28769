"""A tier's scheduler and queue on a real API server; of Volcano and KAI only the objects are there, neither runs."""

import json
from collections.abc import Iterator

import pytest

from installation.workload_crds import WorkloadKind, crd
from localcluster.crds import add_crds, delete_crd

from .installed import Installed, Tree, gpu_pod

pytestmark = pytest.mark.apiserver

JOBS = WorkloadKind("batch.volcano.sh", "Job", "jobs", ("v1alpha1",))
SCHEDULING = {
    "gpu-training": {"schedulerName": "volcano", "queue": {"system": "Volcano", "name": "training"}},
    "gpu-batch": {"schedulerName": "kai-scheduler", "queue": {"system": "KAI", "name": "night"}},
}
FILLS_IN_DEFAULT = """
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: volcano-fills-in}
spec:
  matchConstraints:
    resourceRules:
    - {apiGroups: [batch.volcano.sh], apiVersions: ["*"], resources: [jobs], operations: [CREATE]}
  failurePolicy: Fail
  reinvocationPolicy: IfNeeded
  mutations:
  - patchType: JSONPatch
    jsonPatch:
      expression: >-
        has(object.spec.queue) ? [] : [JSONPatch{op: "add", path: "/spec/queue", value: "default"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: volcano-fills-in}
spec: {policyName: volcano-fills-in}
"""
"""What Volcano's own webhook does (patchDefaultQueue), and before ours."""


@pytest.fixture(scope="module")
def scheduling(installed: Installed) -> Iterator[Installed]:
    """The webhook with a scheduler for two tiers, and Volcano's Jobs beside it, whose queue is filled in."""
    cluster = installed.cluster
    add_crds(cluster, crd(JOBS))
    cluster.apply(FILLS_IN_DEFAULT)
    with installed.policy_with(scheduling=SCHEDULING):
        installed.eventually(lambda: active(installed), "all active")
        yield installed
    for kind in ("mutatingadmissionpolicybinding", "mutatingadmissionpolicy"):
        installed.api.delete(f"{kind}/volcano-fills-in")
    delete_crd(cluster, f"{JOBS.plural}.{JOBS.group}")


def active(webhook: Installed) -> bool:
    """Return whether the queue is set. A mutating policy knows a new kind some seconds after it is served: 503."""
    answer = webhook.create(volcano_job(), "default", dry_run=True)
    return not answer.code and bool(json.loads(answer.stdout)["spec"]["queue"] == "training")


def volcano_job(name: str = "llm", **spec: object) -> Tree:
    pod = gpu_pod("x", 1)["spec"]
    pod["containers"][0]["command"] = ["torchrun", "train.py"]
    tasks = [{"name": "worker", "replicas": 2, "template": {"spec": pod}}]
    metadata = {"name": name, "labels": {"gpu-tiers.dev/tier": "gpu-training"}}
    spec = {"minAvailable": 2, "schedulerName": "volcano", "tasks": tasks, **spec}
    return {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": metadata, "spec": spec}


def queue_of(webhook: Installed, namespace: str, **spec: object) -> str:
    """Return the queue in which a Volcano Job ends."""
    answer = webhook.create(volcano_job(**spec), namespace)
    assert not answer.code, answer.stderr
    return str(json.loads(answer.stdout)["spec"]["queue"])


def made(webhook: Installed, namespace: str, pod: Tree) -> Tree:
    answer = webhook.create(pod, namespace)
    assert not answer.code, answer.stderr
    stored: Tree = json.loads(answer.stdout)
    return stored


def test_a_volcano_job_goes_into_its_tiers_queue_though_volcano_has_filled_one_in(
    scheduling: Installed, namespace: str
) -> None:
    assert queue_of(scheduling, namespace) == "training"


@pytest.mark.parametrize("queue", ["research", "default"])
def test_a_queue_that_a_person_wrote_stays_the_default_one_too(
    scheduling: Installed, namespace: str, queue: str
) -> None:
    assert queue_of(scheduling, namespace, queue=queue) == queue


def test_a_second_apply_of_the_same_manifest_changes_nothing(scheduling: Installed, namespace: str) -> None:
    for _ in range(2):
        scheduling.cluster.kubectl("apply", f"--namespace={namespace}", "--filename=-", input=json.dumps(volcano_job()))
    command = ("get", "jobs.batch.volcano.sh", "llm", f"--namespace={namespace}", "--output=json")
    stored = scheduling.cluster.kubectl(*command).json()
    assert (stored["spec"]["queue"], stored["metadata"]["generation"]) == ("training", 1)


def test_a_pod_goes_to_volcano_and_into_its_queue(scheduling: Installed, namespace: str) -> None:
    pod = made(scheduling, namespace, gpu_pod("train", 1, tier="gpu-training"))
    assert pod["spec"]["schedulerName"] == "volcano"
    assert pod["metadata"]["annotations"]["scheduling.volcano.sh/queue-name"] == "training"


def test_a_pod_goes_to_kai_which_may_preempt_it(scheduling: Installed, namespace: str) -> None:
    pod = made(scheduling, namespace, gpu_pod("night", 1, tier="gpu-batch"))
    assert pod["spec"]["schedulerName"] == "kai-scheduler"
    labels = {"kai.scheduler/queue": "night", "kai.scheduler/preemptibility": "preemptible"}
    assert pod["metadata"]["labels"] == labels | {"gpu-tiers.dev/tier": "gpu-batch"}


def test_a_pod_of_a_coscheduling_group_keeps_the_scheduler_that_knows_it(scheduling: Installed, namespace: str) -> None:
    pod = gpu_pod("member", 1, tier="gpu-training", schedulerName="scheduler-plugins-scheduler")
    pod["metadata"]["labels"] |= {"scheduling.x-k8s.io/pod-group": "gang"}
    assert made(scheduling, namespace, pod)["spec"]["schedulerName"] == "scheduler-plugins-scheduler"
