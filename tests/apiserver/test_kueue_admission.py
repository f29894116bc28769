"""A release by Kueue that our rows have no room for, on a real API server. The test plays Kueue."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from installation.examples import example_policy
from installation.workload_crds import WorkloadKind, crd
from localcluster.crds import delete_crd

from .installed import Installed, Tree, gpu_pod

pytestmark = pytest.mark.apiserver

CLASSES = WorkloadKind("kueue.x-k8s.io", "WorkloadPriorityClass", "workloadpriorityclasses", ("v1beta2",), "Cluster")
WORKLOADS = WorkloadKind("kueue.x-k8s.io", "Workload", "workloads", ("v1beta2",))
H100 = {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}
CONDITION = {
    "type": "object",
    "required": ["lastTransitionTime", "message", "reason", "status", "type"],
    "properties": {
        "lastTransitionTime": {"type": "string", "format": "date-time"},
        "message": {"type": "string", "maxLength": 32768},
        "observedGeneration": {"type": "integer", "format": "int64", "minimum": 0},
        "reason": {"type": "string", "pattern": "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$"},
        "status": {"type": "string", "enum": ["True", "False", "Unknown"]},
        "type": {"type": "string"},
    },
}
CONDITIONS = {
    "type": "array",
    "items": CONDITION,
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["type"],
}


def workload_crd() -> Tree:
    """With the conditions of Kueue's own CRD, and its status subresource."""
    made: Tree = json.loads(json.dumps(crd(WORKLOADS)))
    [version] = made["spec"]["versions"]
    kept = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    status = kept | {"properties": {"conditions": CONDITIONS}}
    version["schema"] = {"openAPIV3Schema": {"type": "object", "properties": {"spec": kept, "status": status}}}
    version["subresources"] = {"status": {}}
    return made


@pytest.fixture(scope="module")
def beside_kueue(installed: Installed) -> Iterator[Installed]:
    """The webhook that knows of Kueue and of a flavor."""
    for each in (crd(CLASSES), workload_crd()):
        installed.cluster.apply(json.dumps(each))
    names = [f"{each.plural}.{each.group}" for each in (CLASSES, WORKLOADS)]
    installed.cluster.kubectl("wait", "--for=condition=Established", *(f"crd/{each}" for each in names))
    flavors = [{"name": "h100", "nodeLabels": H100}]
    known = {"kueue": {"workloadPriorityClasses": True}, "resourceFlavors": flavors}
    installed.upgrade(policy=example_policy() | known)
    yield installed
    installed.upgrade()
    for each in names:
        delete_crd(installed.cluster, each)


class Kueue:
    """What Kueue does with one job."""

    def __init__(self, installed: Installed, namespace: str, pods: int) -> None:
        self.installed = installed
        self.namespace = namespace
        template = {"spec": gpu_pod("x")["spec"] | {"restartPolicy": "Never", "nodeSelector": {}}}
        spec = {"parallelism": pods, "completions": pods, "suspend": True, "template": template}
        metadata = {"name": "work", "labels": {"kueue.x-k8s.io/queue-name": "research"}}
        job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}
        answer = installed.create(job, namespace, "--output=json")
        self.warnings = answer.stderr
        self._make_workload(json.loads(answer.stdout)["metadata"]["uid"])

    def _make_workload(self, uid: str) -> None:
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "work", "uid": uid, "controller": True}
        metadata = {"name": "job-work-1", "ownerReferences": [owner]}
        tree = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload", "metadata": metadata, "spec": {}}
        assert not self.installed.create(tree, self.namespace).code

    def admits(self) -> str:
        """It reserves its quota, and releases the job on its flavor; what the API server answers."""
        self.sets(("QuotaReserved", "True"), ("Admitted", "True"), ("Evicted", "False"))
        patch = {"spec": {"suspend": False, "template": {"spec": {"nodeSelector": H100}}}}
        return self._patch("job/work", patch)

    def puts_aside(self) -> None:
        """What its job reconciler does with a Workload that was evicted."""
        evicted = self.says("Evicted")
        told = {"reason": evicted["reason"], "message": evicted["message"]}
        self.sets(("QuotaReserved", "False"), ("Admitted", "False"), ("Requeued", "False"), **told)

    def sets(self, *conditions: tuple[str, str], reason: str = "Kueue", message: str = "Kueue says so") -> None:
        """It writes these conditions with a server-side apply, as it does, and forces them."""
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        rest = {"reason": reason, "message": message, "lastTransitionTime": now}
        status = {"conditions": [{"type": kind, "status": holds, **rest} for kind, holds in conditions]}
        metadata = {"name": "job-work-1", "namespace": self.namespace}
        tree = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload", "metadata": metadata, "status": status}
        apply = ("apply", "--server-side", "--force-conflicts", "--field-manager=kueue-admission")
        self.installed.cluster.kubectl(*apply, "--subresource=status", "-f", "-", input=json.dumps(tree))

    def says(self, kind: str) -> Tree:
        """A condition of the Workload; {} where there is none."""
        found = self.installed.get("workloads.kueue.x-k8s.io/job-work-1", self.namespace)
        conditions = found.get("status", {}).get("conditions", [])
        return next((each for each in conditions if each["type"] == kind), {})

    def _patch(self, what: str, patch: Tree) -> str:
        command = ("patch", what, f"--namespace={self.namespace}", "--type=strategic", f"--patch={json.dumps(patch)}")
        return str(self.installed.cluster.kubectl(*command, check=False).stderr)


def test_kueue_takes_its_admission_back_and_gives_it_again(beside_kueue: Installed, namespace: str) -> None:
    beside_kueue.tenant(namespace, namespace, quotas=[{"gpus": 9}, {"resourceFlavor": "h100", "gpus": 1}])
    kueue = Kueue(beside_kueue, namespace, 3)
    assert f"[two-quotas] TenantQuota {namespace} and Kueue both count this" in kueue.warnings
    sentence = f"tenant {namespace}: h100 allows 1 GPU; this Job asks for 3 in all. Would fit: no tier. "
    assert sentence in kueue.admits()
    assert kueue.says("Evicted")["status"] == "False", "Kueue may try again by itself at first"
    beside_kueue.eventually(lambda: kueue.says("Evicted")["status"] == "True", "taken back")
    evicted = kueue.says("Evicted")
    assert (evicted["reason"], evicted["message"]) == ("TenantQuota", f"{sentence}See TenantQuota/{namespace}.")
    assert kueue.says("Admitted")["message"] == "Kueue says so"
    kueue.puts_aside()
    beside_kueue.tenant(namespace, namespace, quotas=[{"gpus": 9}])
    beside_kueue.eventually(lambda: kueue.says("Requeued")["status"] == "True", "queued again")
    assert kueue.says("Requeued")["reason"] == "TenantQuotaHasRoom"
    assert kueue.admits() == ""
    beside_kueue.eventually(lambda: beside_kueue.usage(namespace) == "total 3/9", "the pods")


def test_what_has_room_by_kueues_next_try_is_left_alone(beside_kueue: Installed, namespace: str) -> None:
    beside_kueue.tenant(namespace, namespace, quotas=[{"gpus": 1}])
    kueue = Kueue(beside_kueue, namespace, 1)
    other = beside_kueue.create(gpu_pod("other"), namespace)
    assert not other.code, other.stderr
    assert "the total is at 1 of 1 GPU; this Job asks for 1." in kueue.admits()
    beside_kueue.cluster.kubectl("delete", "pod", "other", f"--namespace={namespace}", "--grace-period=0", "--force")
    beside_kueue.eventually(lambda: kueue.admits() == "", "the next try")
    beside_kueue.eventually(lambda: beside_kueue.usage(namespace) == "total 1/1", "the pod")
    assert kueue.says("Evicted")["status"] == "False"
