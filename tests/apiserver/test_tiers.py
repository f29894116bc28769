"""A workload that a person applies on a real API server gets a tier, a hook, or a sentence."""

import json
import re
from typing import Any

import pytest

from .installed import Installed, gpu_pod

pytestmark = pytest.mark.apiserver


def test_a_pod_gets_the_three_fields_together_and_says_who_chose(installed: Installed, namespace: str) -> None:
    answer = installed.create(gpu_pod("work", tier="gpu-batch"), namespace)
    pod = json.loads(answer.stdout)
    assert {key: pod["spec"][key] for key in ("priorityClassName", "priority", "preemptionPolicy")} == {
        "priorityClassName": "gpu-batch",
        "priority": 400,
        "preemptionPolicy": "PreemptLowerPriority",
    }
    assert pod["metadata"]["annotations"]["gpu-tiers.dev/assigned-by"] == "label: the label on the pod says gpu-batch"


def test_a_training_job_saves_before_it_is_preempted(installed: Installed, namespace: str) -> None:
    job = {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {"name": "finetune", "uid": "ignored"},
        "spec": {"pytorchReplicaSpecs": {"Master": {"replicas": 1, "template": {"spec": gpu_pod("x")["spec"]}}}},
    }
    assert installed.create(job, namespace).code == 0
    made = installed.get("pytorchjob/finetune", namespace)
    pod = gpu_pod("finetune-master-0")
    pod["metadata"]["labels"] = {"training.kubeflow.org/job-name": "finetune"}
    owner = {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "name": "finetune", "uid": made["metadata"]["uid"]}
    pod["metadata"]["ownerReferences"] = [{**owner, "controller": True}]
    created = json.loads(installed.create(pod, namespace).stdout)
    assert created["spec"]["priorityClassName"] == "gpu-training"
    assert created["spec"]["terminationGracePeriodSeconds"] == 130
    script = created["spec"]["containers"][0]["lifecycle"]["preStop"]["exec"]["command"][2]
    assert "/run/gpu-tiers" in script


def test_a_cpu_pod_is_left_alone(installed: Installed, namespace: str) -> None:
    pod = gpu_pod("web", 0)
    created = json.loads(installed.create(pod, namespace).stdout)
    assert created["spec"]["priority"] == 0
    assert "labels" not in created["metadata"]


def test_over_quota_reads_on_one_line(installed: Installed, namespace: str) -> None:
    quotas = [{"gpus": "9"}, {"tier": "gpu-training", "gpus": "6"}, {"tier": "gpu-serving", "gpus": "1"}]
    quotas.append({"tier": "gpu-interactive", "gpus": "1"})
    installed.tenant("gamma", namespace, maxTier="gpu-training", quotas=quotas)
    try:
        assert installed.create(gpu_pod("holds-six", 6, tier="gpu-training"), namespace).code == 0
        refused = installed.create(gpu_pod("two-more", 2, tier="gpu-training"), namespace)
        assert refused.stderr.strip() == (
            'Error from server (Forbidden): admission webhook "pods.validate.gpu-tiers.dev" denied the request: '
            "exceeded quota: tenant gamma: gpu-training is at 6 of 6 GPUs; this pod asks for 2. "
            "Would fit: gpu-batch (3 left). See TenantQuota/gamma. [over-quota]"
        )
        installed.eventually(lambda: "gpu-training 6/6" in installed.usage("gamma"), "the usage in the status")
        installed.api.delete("pod/holds-six", namespace=namespace, seconds=0)
        installed.eventually(
            lambda: installed.create(gpu_pod("two-more", 2, tier="gpu-training"), namespace).code == 0, "room again"
        )
    finally:
        installed.api.delete("tenantquota/gamma")


def test_a_quota_lowered_below_its_use_stays_active_and_says_so(installed: Installed, namespace: str) -> None:
    def quota(gpus: str) -> None:
        rows = [{"tier": "gpu-batch", "gpus": gpus}]
        installed.tenant("lowered", namespace, allowedTiers=["gpu-batch", "gpu-serving"], quotas=rows)

    quota("4")
    try:
        assert installed.create(gpu_pod("holds-four", 4, tier="gpu-batch"), namespace).code == 0
        installed.eventually(lambda: installed.usage("lowered") == "gpu-batch 4/4", "the pod in the status")
        quota("1")
        installed.eventually(lambda: "OverQuota" in shown(installed, "lowered"), "the reason")
        assert re.search(r"gpu-batch 4/1 +True +OverQuota", shown(installed, "lowered"))
        sentence = "gpu-batch is at 4 of 1; nothing is evicted, and new pods that count there are refused"
        wide = shown(installed, "lowered", "--output=wide")
        assert sentence in wide
        assert '["gpu-batch","gpu-serving"]' in wide, "it has no MAX TIER"
        refused = installed.create(gpu_pod("one-more", 1, tier="gpu-batch"), namespace)
        assert "gpu-batch is at 4 of 1 GPU; this pod asks for 1" in refused.stderr
        quota("4")
        installed.eventually(lambda: "Active" in shown(installed, "lowered"), "no word of it any more")
    finally:
        installed.api.delete("tenantquota/lowered")


def test_a_refusal_offers_no_more_than_a_resource_quota_leaves(installed: Installed, namespace: str) -> None:
    quotas = [{"tier": f"gpu-{tier}", "gpus": gpus} for tier, gpus in CROWDED.items()]
    installed.tenant("beside", namespace, quotas=quotas)
    line = {"scopeName": "PriorityClass", "operator": "In", "values": ["gpu-batch"]}
    native = {"hard": {"requests.nvidia.com/gpu": "3"}, "scopeSelector": {"matchExpressions": [line]}}
    head = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "batch", "namespace": namespace}}

    def refused() -> str:
        return installed.create(gpu_pod("more", 2, tier="gpu-training"), namespace).stderr.partition(" Would fit: ")[2]

    def used() -> str:
        status = installed.get("quota/batch", namespace).get("status", {})
        return str(status.get("used", {}).get("requests.nvidia.com/gpu"))

    def counted() -> bool:
        """Return whether its admission counts by now: its cache of quotas takes a pod in only after minutes."""
        tried = installed.create(gpu_pod("most", 4, tier="gpu-batch"), namespace, dry_run=True)
        return "exceeded quota: batch" in tried.stderr

    try:
        assert installed.create(gpu_pod("trains", 2, tier="gpu-training"), namespace).code == 0
        assert refused() == "gpu-batch (9 left). See TenantQuota/beside. [over-quota]\n"
        installed.api.apply({**head, "spec": native})
        installed.eventually(lambda: used() == "0", "the ResourceQuota")
        both = "See TenantQuota/beside and ResourceQuota/batch. [over-quota]\n"
        installed.eventually(lambda: refused() == f"gpu-batch (3 left). {both}", "the lower offer")
        installed.eventually(counted, "the API server's own sight of the ResourceQuota")
        assert installed.create(gpu_pod("scores", 2, tier="gpu-batch"), namespace).code == 0
        installed.eventually(lambda: used() == "2", "the pod in the ResourceQuota")
        installed.eventually(lambda: refused() == f"no tier now. {both}", "no offer")
        assert "exceeded quota: batch" in installed.create(gpu_pod("more", 2, tier="gpu-batch"), namespace).stderr
    finally:
        installed.api.delete("tenantquota/beside")


CROWDED = {"training": "2", "serving": "0", "batch": "9", "interactive": "0"}


def test_a_pod_that_is_refused_after_us_shows_as_reserved(installed: Installed, namespace: str) -> None:
    """A ResourceQuota is asked after the webhooks: its GPUs stay reserved until the reservation expires."""
    installed.tenant("promised", namespace, quotas=[{"gpus": "4"}])
    none = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "none"}}
    installed.api.create({**none, "spec": {"hard": {"requests.nvidia.com/gpu": 0}}}, namespace)
    try:
        installed.eventually(lambda: bool(installed.get("quota/none", namespace)["status"]), "the ResourceQuota")
        refused = installed.create(gpu_pod("late", 2, tier="gpu-batch"), namespace)
        assert "exceeded quota: none" in refused.stderr
        installed.eventually(lambda: installed.usage("promised") == "total 0/4 (+2 reserved)", "the reservation")
    finally:
        installed.api.delete("quota/none", namespace=namespace)
        installed.api.delete("tenantquota/promised")


def shown(installed: Installed, tenant: str, *arguments: str) -> str:
    """`kubectl get tenantquota` as a person sees it."""
    return str(installed.cluster.kubectl("get", "tenantquota", tenant, *arguments).stdout)


def test_a_dry_run_books_nothing(installed: Installed, namespace: str) -> None:
    installed.tenant("delta", namespace, quotas=[{"gpus": "2"}])
    try:
        for _ in range(3):
            assert installed.create(gpu_pod("tried", 2), namespace, dry_run=True).code == 0
        assert installed.create(gpu_pod("tried", 3), namespace, dry_run=True).code == 1
        assert installed.usage("delta") == "total 0/2"
    finally:
        installed.api.delete("tenantquota/delta")


def test_a_tier_label_can_not_drift(installed: Installed, namespace: str) -> None:
    installed.create(gpu_pod("work", tier="gpu-batch"), namespace)
    relabel = ("label", "pod/work", f"--namespace={namespace}", "--overwrite")
    drift = installed.cluster.kubectl(*relabel, "gpu-tiers.dev/tier=gpu-training", check=False)
    assert "gpu-training, but this pod runs as gpu-batch; a pod's tier is fixed when it is created" in drift.stderr
    assert installed.cluster.kubectl(*relabel, "team=vision", check=False).code == 0


def test_a_mistake_is_named(installed: Installed, namespace: str) -> None:
    pods = [
        gpu_pod("x", tier="gpu-urgent"),
        gpu_pod("y", tier="gpu-batch", priorityClassName="gpu-training"),
        gpu_pod("z", schedulingGroup={"podGroupName": "nowhere"}),
    ]
    refused = installed.create({"apiVersion": "v1", "kind": "List", "items": pods}, namespace)
    assert 'unknown tier "gpu-urgent"; known tiers: gpu-training, gpu-serving' in refused.stderr
    assert "gpu-batch contradicts spec.priorityClassName: gpu-training" in refused.stderr
    assert "nowhere" in refused.stderr
    assert refused.stderr.count("(Forbidden)") == len(pods)


@pytest.mark.parametrize(
    ("api_version", "kind", "answer"),
    [
        ("apps.nvidia.com/v1alpha1", "NIMService", "policy-default: the policy's default"),
        ("example.com/v1", "Widget", "policy-default: the policy's default"),
        ("kubeflow.org/v1", "PyTorchJob", "owner PyTorchJob/forged does not exist"),
    ],
    ids=["a kind of the table that the cluster does not serve", "a kind of nobody's", "an object that is not there"],
)
def test_a_named_owner_is_no_proof(
    installed: Installed, namespace: str, api_version: str, kind: str, answer: str
) -> None:
    pod = gpu_pod("work")
    owner = {"apiVersion": api_version, "kind": kind, "name": "forged", "uid": "made-up", "controller": True}
    pod["metadata"]["ownerReferences"] = [owner]
    created = installed.create(pod, namespace, dry_run=True)
    assert answer in created.stdout + created.stderr


def test_a_label_on_the_way_to_the_pods_is_read_when_the_workload_is_applied(
    installed: Installed, namespace: str
) -> None:
    """A CronJob's label for its Jobs: above the ceiling its author hears of it, and not at three in the morning."""
    spec = gpu_pod("x", 1)["spec"] | {"restartPolicy": "Never"}
    with installed.tenant_for(f"of-{namespace}", namespace, maxTier="gpu-batch", quotas=[{"gpus": 4}]):
        above, within = (nightly(spec, tier) for tier in ("gpu-training", "gpu-batch"))
        refused = installed.create(above, namespace).stderr
        field = "CronJob/nightly.spec.jobTemplate.metadata.labels[gpu-tiers.dev/tier]"
        assert f"{field}: gpu-training is not for tenant of-{namespace}" in refused
        assert not installed.create(within, namespace).code
        create = ("create", "job", "now", "--from=cronjob/nightly", f"--namespace={namespace}")
        installed.cluster.kubectl(*create)
        (pod,) = made_by(installed, namespace, "batch.kubernetes.io/job-name=now", 1)
    assert pod["spec"]["priorityClassName"] == "gpu-batch"
    assert pod["metadata"]["annotations"]["gpu-tiers.dev/assigned-by"] == "label: the label on Job/now says gpu-batch"


def nightly(spec: dict[str, object], tier: str) -> dict[str, object]:
    made = {"metadata": {"labels": {"gpu-tiers.dev/tier": tier}}, "spec": {"template": {"spec": spec}}}
    schedule = {"schedule": "0 3 1 1 *", "jobTemplate": made}
    return {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "nightly"}, "spec": schedule}


def made_by(installed: Installed, namespace: str, selector: str, count: int) -> list[dict[str, Any]]:
    """The pods that a controller makes, once they are there."""
    there = lambda: list(installed.api.get("pods", namespace, labelSelector=selector)["items"])  # noqa: E731
    installed.eventually(lambda: len(there()) == count, f"{count} pods of {selector}")
    return there()


def test_a_gang_that_is_labelled_in_one_template_runs_in_one_tier(installed: Installed, namespace: str) -> None:
    master, worker = (gpu_pod("x", 1, tier=tier) for tier in (None, "gpu-batch"))
    specs = {"Master": {"replicas": 1, "template": template_of(master)}, "Worker": {"template": template_of(worker)}}
    job = {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": {"name": "llm"}}
    answer = installed.create({**job, "spec": {"pytorchReplicaSpecs": specs}}, namespace)
    warning = "[gang-label] spec.pytorchReplicaSpecs.Worker.template names gpu-batch"
    assert f"{warning}: all pods of this PyTorchJob get that tier" in answer.stderr
    owner = {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "name": "llm", "controller": True}
    owner["uid"] = installed.get("pytorchjob/llm", namespace)["metadata"]["uid"]
    for name, template in (("master", master), ("worker", worker)):
        metadata = {"name": f"llm-{name}-0", "labels": template["metadata"]["labels"], "ownerReferences": [owner]}
        created = installed.create({**template, "metadata": metadata}, namespace)
        assert json.loads(created.stdout)["spec"]["priorityClassName"] == "gpu-batch", name

    specs["Master"]["template"] = template_of(gpu_pod("x", 1, tier="gpu-training"))
    other = {**job, "metadata": {"name": "other"}, "spec": {"pytorchReplicaSpecs": specs}}
    refused = installed.create(other, namespace).stderr
    assert (
        "spec.pytorchReplicaSpecs.Worker.template.metadata.labels[gpu-tiers.dev/tier]: gpu-batch contradicts" in refused
    )


def template_of(pod: dict[str, Any]) -> dict[str, Any]:
    """A pod as a template has it."""
    return {"metadata": {"labels": pod["metadata"]["labels"]}, "spec": pod["spec"]}
