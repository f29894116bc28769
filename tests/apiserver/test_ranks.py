"""The ranks that other schedulers give a pod, on a real API server: PodGroups of Volcano and KAI, and KAI's label.

Only the objects are there, no scheduler runs.
"""

from collections.abc import Iterator

import pytest

from installation.workload_crds import WorkloadKind, crd
from localcluster.crds import add_crds, delete_crd

from .installed import Installed, Tree, gpu_pod

pytestmark = pytest.mark.apiserver

VOLCANO = WorkloadKind("scheduling.volcano.sh", "PodGroup", "podgroups", ("v1beta1",))
KAI = WorkloadKind("scheduling.run.ai", "PodGroup", "podgroups", ("v2alpha2",))
JOBS = WorkloadKind("batch.volcano.sh", "Job", "jobs", ("v1alpha1",))
NAMED_BY = {VOLCANO: "scheduling.k8s.io/group-name", KAI: "pod-group-name"}
SHARED = "a scheduler may not rank a pod above its own class: write the pod's class there, or none"


@pytest.fixture(scope="module", autouse=True)
def kinds(installed: Installed) -> Iterator[None]:
    """The groups of Volcano and of KAI, and Volcano's Jobs."""
    cluster, names = installed.cluster, [f"{kind.plural}.{kind.group}" for kind in (VOLCANO, KAI, JOBS)]
    add_crds(cluster, *map(crd, (VOLCANO, KAI, JOBS)))
    yield
    for name in names:
        delete_crd(cluster, name)


@pytest.fixture(autouse=True)
def tenant(installed: Installed, namespace: str) -> Iterator[str]:
    """A tenant whose ceiling is gpu-serving, in the test's namespace."""
    name = f"ranks-{namespace}"
    with installed.tenant_for(name, namespace, maxTier="gpu-serving") as name:
        yield name


def group(kind: WorkloadKind, priority_class: str = "", **labels: str) -> Tree:
    spec = {"minMember": 1} | ({"priorityClassName": priority_class} if priority_class else {})
    metadata = {"name": "gang", "labels": {f"gpu-tiers.dev/{key}": value for key, value in labels.items()}}
    return {"apiVersion": f"{kind.group}/{kind.versions[0]}", "kind": kind.kind, "metadata": metadata, "spec": spec}


def member(kind: WorkloadKind, tier: str) -> Tree:
    pod = gpu_pod("member", tier=tier)
    pod["metadata"]["annotations"] = {NAMED_BY[kind]: "gang"}
    return pod


def said(installed: Installed, namespace: str, tree: Tree) -> str:
    return installed.create(tree, namespace).stderr


def patched(installed: Installed, namespace: str, what: str, **change: object) -> str:
    return installed.api.patch(what, change, namespace, check=False).stderr


@pytest.mark.parametrize("kind", [VOLCANO, KAI], ids=lambda kind: kind.group)
def test_a_group_by_hand_stays_within_the_ceiling_and_its_tier(
    installed: Installed, namespace: str, tenant: str, kind: WorkloadKind
) -> None:
    above = f"spec.priorityClassName: gpu-training is not for tenant {tenant}; it may use gpu-serving,"
    assert above in said(installed, namespace, group(kind, "gpu-training"))
    system = f"system-node-critical (2000001000) is above the ceiling of tenant {tenant}"
    assert system in said(installed, namespace, group(kind, "system-node-critical"))
    two = "metadata.labels[gpu-tiers.dev/tier]: gpu-batch contradicts spec.priorityClassName: gpu-serving"
    assert two in said(installed, namespace, group(kind, "gpu-serving", tier="gpu-batch"))
    assert said(installed, namespace, group(kind, "gpu-batch")) == ""
    one = f"podgroups.{kind.group}/gang"
    assert above in patched(installed, namespace, one, spec={"priorityClassName": "gpu-training"})
    assert patched(installed, namespace, one, spec={"minMember": 2}) == ""


@pytest.mark.parametrize("kind", [VOLCANO, KAI], ids=lambda kind: kind.group)
def test_no_group_ranks_above_its_pods_whichever_comes_first(
    installed: Installed, namespace: str, kind: WorkloadKind
) -> None:
    """The pods count in their own tier, and the scheduler would rank them by the group's."""
    one, raised = f"podgroups.{kind.group}/gang", {"priorityClassName": "gpu-serving"}
    assert said(installed, namespace, group(kind, "gpu-serving")) == ""
    named = f"metadata.annotations[{NAMED_BY[kind]}]: PodGroup/gang is gpu-serving, but this pod is gpu-batch; {SHARED}"
    assert named in said(installed, namespace, member(kind, "gpu-batch"))

    assert patched(installed, namespace, one, spec={"priorityClassName": "gpu-batch"}) == ""
    assert said(installed, namespace, member(kind, "gpu-batch")) == ""
    its_pod = f"spec.priorityClassName: gpu-serving, but its pod member is gpu-batch; {SHARED}"
    assert its_pod in patched(installed, namespace, one, spec=raised)
    installed.api.delete(one, namespace=namespace)
    assert its_pod in said(installed, namespace, group(kind, "gpu-serving"))
    assert said(installed, namespace, group(kind, "gpu-interactive")) == "", "a lower one, as a demotion leaves it"


@pytest.mark.parametrize("kind", [VOLCANO, KAI], ids=lambda kind: kind.group)
def test_a_pod_moves_to_no_higher_group(installed: Installed, namespace: str, kind: WorkloadKind) -> None:
    assert said(installed, namespace, group(kind, "gpu-serving")) == ""
    assert said(installed, namespace, gpu_pod("member", tier="gpu-batch")) == ""
    moved = patched(installed, namespace, "pod/member", metadata={"annotations": {NAMED_BY[kind]: "gang"}})
    assert "PodGroup/gang is gpu-serving, but this pod is gpu-batch" in moved
    unknown = {"annotations": {NAMED_BY[kind]: "none-of-that-name"}}
    assert patched(installed, namespace, "pod/member", metadata=unknown) == ""


def test_kais_label_ranks_no_pod_above_its_tier(installed: Installed, namespace: str) -> None:
    label = {"priorityClassName": "gpu-serving"}
    pod = gpu_pod("ranked", tier="gpu-batch")
    pod["metadata"]["labels"] |= label
    assert f"metadata.labels[priorityClassName]: gpu-serving, but this pod is gpu-batch; {SHARED}" in (
        said(installed, namespace, pod)
    )
    assert said(installed, namespace, gpu_pod("plain", tier="gpu-batch")) == ""
    assert "but this pod is gpu-batch" in patched(installed, namespace, "pod/plain", metadata={"labels": label})
    assert patched(installed, namespace, "pod/plain", metadata={"labels": {"priorityClassName": "no-class"}}) == ""

    template = {"metadata": {"labels": {"gpu-tiers.dev/tier": "gpu-batch"}}, "spec": gpu_pod("x")["spec"]}
    template["spec"]["restartPolicy"] = "Never"
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "night"}, "spec": {"template": template}}
    ranked = {**job, "metadata": {"name": "ranked", "labels": label}}
    assert "metadata.labels[priorityClassName]: gpu-serving, but its pods are gpu-batch" in (
        said(installed, namespace, ranked)
    )
    assert said(installed, namespace, job).startswith("Warning: [job-backoff]"), "it is admitted"
    assert "but its pods are gpu-batch" in patched(installed, namespace, "job/night", metadata={"labels": label})


def test_a_volcano_job_is_not_ranked_above_its_pods_later(installed: Installed, namespace: str) -> None:
    """Volcano lets the class of a Job be changed, and hands it on to its PodGroup."""
    spec = gpu_pod("x")["spec"] | {"restartPolicy": "Never"}
    template = {"metadata": {"labels": {"gpu-tiers.dev/tier": "gpu-batch"}}, "spec": spec}
    tasks = [{"name": "worker", "replicas": 1, "template": template}]
    job = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": "night"}}
    assert said(installed, namespace, {**job, "spec": {"minAvailable": 1, "tasks": tasks}}) == ""
    raised = patched(installed, namespace, "jobs.batch.volcano.sh/night", spec={"priorityClassName": "gpu-serving"})
    assert "gpu-batch contradicts" in raised
