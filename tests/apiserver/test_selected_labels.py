"""Labels that a selector needs, on a real control plane: each that gpu-tiers writes, when its author wrote it first."""

import json
from collections.abc import Iterator

import pytest

from installation.examples import example_policy
from installation.workload_crds import crd
from localcluster.crds import add_crds, delete_crd
from webhook.policy.assignment.kueue import PRIORITY_CLASS
from webhook.policy.assignment.request import TIER_LABEL
from webhook.policy.metadata_keys import WRITTEN

from .installed import Installed, Tree, gpu_pod
from .test_kueue import KUEUES
from .test_schedulers import SCHEDULING

pytestmark = pytest.mark.apiserver

THEIRS = {**dict.fromkeys(WRITTEN, "theirs"), TIER_LABEL: "gpu-training", PRIORITY_CLASS: "gpu-training"}
"""Every key that gpu-tiers writes, as a label. Pods that are demoted would get another value for each."""
NO_TIER = {"matchExpressions": [{"key": TIER_LABEL, "operator": "DoesNotExist"}], "matchLabels": {"app": "work"}}


@pytest.fixture(scope="module")
def writing(installed: Installed) -> Iterator[Installed]:
    """The webhook with all that makes it write labels: Kueue's classes, and queues of KAI and Volcano."""
    add_crds(installed.cluster, crd(KUEUES))
    installed.upgrade(policy=example_policy() | {"kueue": {"workloadPriorityClasses": True}, "scheduling": SCHEDULING})
    yield installed
    installed.upgrade()
    delete_crd(installed.cluster, f"{KUEUES.plural}.{KUEUES.group}")


@pytest.fixture
def demoting(writing: Installed, namespace: str) -> Iterator[Installed]:
    """A tenant with room for one GPU of training, whose other pods are demoted."""
    rows = [{"tier": "gpu-training", "gpus": 1}, {"tier": "gpu-batch", "gpus": 9}]
    tiers = ["gpu-training", "gpu-batch"]
    with writing.tenant_for(f"of-{namespace}", namespace, allowedTiers=tiers, quotas=rows, onExceed="Demote"):
        yield writing


def workload(api_version: str, kind: str, selector: Tree, labels: dict[str, str], **spec: object) -> Tree:
    pod = gpu_pod("")["spec"] | ({"restartPolicy": "Never"} if kind == "Job" else {})
    made = {"selector": selector, "template": {"metadata": {"labels": labels}, "spec": pod}}
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "work"}, "spec": {**made, **spec}}


KINDS: dict[str, tuple[str, Tree]] = {
    "Deployment": ("apps/v1", {"replicas": 2}),
    "ReplicaSet": ("apps/v1", {"replicas": 2}),
    "StatefulSet": ("apps/v1", {"replicas": 2, "podManagementPolicy": "Parallel"}),
    "Job": ("batch/v1", {"parallelism": 2, "completions": 2, "manualSelector": True}),
}
SEEN = ("replicas", "active", "currentNumberScheduled")
"""Where a controller counts the pods that it knows for its own."""


@pytest.mark.parametrize("kind", KINDS)
def test_no_pod_is_orphaned_and_made_again(demoting: Installed, namespace: str, kind: str) -> None:
    """The label stands in the selector and in the template, as kustomize's commonLabels writes it."""
    api_version, spec = KINDS[kind]
    selector = {"matchLabels": THEIRS}
    budget = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "work"}}
    assert demoting.create(budget | {"spec": {"minAvailable": 1, "selector": selector}}, namespace).code == 0
    answer = demoting.create(workload(api_version, kind, selector, THEIRS, **spec), namespace)
    assert answer.code == 0, answer.stderr
    eventually_has(demoting, namespace, kind.lower(), 2)
    assert classes(demoting, namespace) == (["gpu-batch"] * 2 if kind == "Job" else ["gpu-batch", "gpu-training"])
    demoting.eventually(
        lambda: status(demoting, namespace, "poddisruptionbudget").get("expectedPods") == 2, "its budget"
    )
    of_service = demoting.api.get("pods", namespace, labelSelector=written(THEIRS))
    assert len(of_service["items"]) == 2, "a Service with this selector finds them"
    demoting.cluster.kubectl("delete", kind, "work", f"--namespace={namespace}")
    demoting.eventually(lambda: not pods(demoting, namespace), "no pod that outlives it")


def test_no_pod_of_a_daemonset_is_orphaned(demoting: Installed, namespace: str, node: str) -> None:
    """Its one pod is demoted: another holds the GPU of training."""
    assert demoting.create(gpu_pod("first", tier="gpu-training"), namespace).code == 0
    made = workload("apps/v1", "DaemonSet", {"matchLabels": THEIRS}, THEIRS)
    made["spec"]["template"]["spec"]["nodeSelector"] = {"kubernetes.io/hostname": node}
    assert demoting.create(made, namespace).code == 0
    eventually_has(demoting, namespace, "daemonset", 1)
    assert classes(demoting, namespace) == ["gpu-batch", "gpu-training"]


def test_a_selector_may_want_that_a_pod_has_no_tier_label(demoting: Installed, namespace: str) -> None:
    made = workload("apps/v1", "ReplicaSet", NO_TIER, {"app": "work"}, replicas=2)
    made["metadata"]["labels"] = {TIER_LABEL: "gpu-training"}
    assert demoting.create(made, namespace).code == 0
    eventually_has(demoting, namespace, "replicaset", 2)
    assert classes(demoting, namespace) == ["gpu-batch", "gpu-training"]


def eventually_has(webhook: Installed, namespace: str, kind: str, count: int) -> None:
    """Wait until a controller knows so many pods for its own; then there are no others."""

    def knows_them() -> bool:
        reported = status(webhook, namespace, kind)
        return any(reported.get(field) == count for field in SEEN)

    webhook.eventually(knows_them, f"{count} pods of the {kind}")
    there = {each["metadata"]["name"]: each["metadata"].get("ownerReferences", []) for each in pods(webhook, namespace)}
    orphans = [name for name, owners in there.items() if not owners and name != "first"]
    assert (sum(map(len, there.values())), orphans) == (count, [])


def status(webhook: Installed, namespace: str, kind: str) -> Tree:
    found: Tree = webhook.get(f"{kind}/work", namespace).get("status", {})
    return found


def pods(webhook: Installed, namespace: str) -> list[Tree]:
    return list(webhook.get("pods", namespace)["items"])


def classes(webhook: Installed, namespace: str) -> list[str]:
    return sorted(each["spec"]["priorityClassName"] for each in pods(webhook, namespace))


def written(labels: dict[str, str]) -> str:
    """A selector as a request has it."""
    return ",".join(f"{key}={value}" for key, value in labels.items())


def test_a_label_of_a_running_pod_may_be_corrected_and_not_falsified(demoting: Installed, namespace: str) -> None:
    """A demoted pod keeps the label with its request; its charge follows from its class."""
    for name in ("first", "second"):
        answer = demoting.create(gpu_pod(name, tier="gpu-training"), namespace)
    stored = json.loads(answer.stdout)
    assert (stored["metadata"]["labels"][TIER_LABEL], stored["spec"]["priorityClassName"]) == (
        "gpu-training",
        "gpu-batch",
    )
    again = demoting.cluster.kubectl(
        "apply", f"--namespace={namespace}", "-f", "-", input=json.dumps(gpu_pod("second", tier="gpu-training"))
    )
    assert again.stdout.strip() == "pod/second configured", "it is the manifest that was applied"
    label = ("label", "pod", "second", f"--namespace={namespace}", "--overwrite")
    refused = demoting.cluster.kubectl(*label, f"{TIER_LABEL}=gpu-serving", check=False)
    assert refused.code
    assert "gpu-serving" in refused.stderr
    demoting.cluster.kubectl(*label, f"{TIER_LABEL}=gpu-batch")
    demoting.eventually(
        lambda: demoting.usage(f"of-{namespace}") == "gpu-training 1/1, gpu-batch 1/9", "the same usage"
    )
