"""`gpu-tiers audit` and `policy diff` of a cluster in which workloads have come to contradict the policy."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from installation.readiness import wait_for_webhook

from .asking import SOME, expect, run
from .conftest import new_namespace
from .installed import Installed, Tree, gpu_pod

pytestmark = pytest.mark.apiserver

URGENT = {
    "apiVersion": "scheduling.k8s.io/v1",
    "kind": "PriorityClass",
    "metadata": {"name": "audit-urgent"},
    "value": 500,
}
CONFIGURATIONS = ("mutatingwebhookconfiguration", "validatingwebhookconfiguration")


def workload(kind: str, name: str, gpus: int, count: int, *, api: str = "apps/v1", tier: str = "", **pod: Any) -> Tree:
    """A Deployment or a Job of so many pods."""
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {**gpu_pod(name, gpus)["spec"], **pod}}
    counts = {"Deployment": {"replicas": count, "selector": {"matchLabels": labels}}}
    its = counts.get(kind, {"parallelism": count, "completions": count})
    metadata = {"name": name, "labels": {"gpu-tiers.dev/tier": tier} if tier else {}}
    return {"apiVersion": api, "kind": kind, "metadata": metadata, "spec": {**its, "template": template}}


def job(name: str, gpus: int, count: int, **more: Any) -> Tree:
    return workload("Job", name, gpus, count, api="batch/v1", **{"restartPolicy": "Never", **more})


@contextmanager
def away(installed: Installed) -> Iterator[None]:
    """Remove the webhook's configurations, as before it was installed."""
    kubectl = installed.cluster.kubectl
    stored = [installed.api.get(f"{each}/zz-gpu-tiers") for each in CONFIGURATIONS]
    kubectl("delete", ",".join(CONFIGURATIONS), "zz-gpu-tiers")
    try:
        yield
    finally:
        for tree in stored:
            for field in ("uid", "resourceVersion", "creationTimestamp", "generation", "managedFields"):
                tree["metadata"].pop(field, None)
        installed.api.create({"apiVersion": "v1", "kind": "List", "items": stored})
        wait_for_webhook(installed.cluster)


def pods(installed: Installed, namespace: str) -> int:
    return len(installed.get("pods", namespace)["items"])


@pytest.fixture(scope="module")
def contradictions(installed: Installed) -> Iterator[str]:
    """A namespace in which workloads have come to contradict the policy; the tests only read it."""
    with new_namespace(installed.cluster) as namespace:
        contradict(installed, namespace)
        yield namespace
        installed.api.delete(f"tenantquota/{namespace}")
        installed.api.delete("priorityclass/audit-urgent")


def contradict(installed: Installed, namespace: str) -> None:
    """A Job from before, a foreign class, a label that was changed later, and a ceiling and a quota that came last."""
    kubectl, home = installed.cluster.kubectl, f"--namespace={namespace}"
    installed.api.apply(URGENT)
    train = {"command": ["torchrun", "train.py"]}
    old = job("from-before", 2, 2)
    old["spec"]["template"]["spec"]["containers"][0] |= train
    with away(installed):
        assert installed.create(old, namespace).code == 0
        installed.eventually(lambda: pods(installed, namespace) == 2, "the pods from before")
    urgent = gpu_pod("urgent", 1, priorityClassName="audit-urgent")
    for tree in (
        workload("Deployment", "web", 1, 3, tier="gpu-serving"),
        job("relabelled", 1, 1, tier="gpu-batch"),
        job("above", 4, 1, tier="gpu-training"),
        urgent,
    ):
        assert installed.create(tree, namespace).code == 0
    installed.eventually(lambda: pods(installed, namespace) == 8, "all pods")
    kubectl("label", "job/relabelled", "gpu-tiers.dev/tier=gpu-interactive", "--overwrite", home)
    quotas = [{"tier": "gpu-serving", "gpus": "4"}, {"gpus": "12"}]
    installed.tenant(namespace, namespace, quotas=quotas, maxTier="gpu-serving")


def test_an_audit_of_a_cluster(installed: Installed, contradictions: str) -> None:
    asked = ("audit", f"--namespace={contradictions}")
    answer = run(installed, *asked)
    assert (answer.exit_code, answer.stderr) == (1, ""), "what would be refused is an error"
    expect("audit", answer.stdout.replace(contradictions, SOME).rstrip("\n"))
    whole = json.loads(run(installed, "audit", "--output=json").stdout)
    rows = {
        f"{each['kind']}/{each['name']}": each for each in whole["workloads"] if each["namespace"] == contradictions
    }
    assert sum(pods["count"] for pods in rows["Deployment/web"]["pods"]) == 3, (
        "under the Deployment, not its ReplicaSet"
    )
    output = run(installed, *asked, "--output=json", "--ignore=tier-not-allowed", "--ignore=would-be-refused")
    assert output.exit_code == 0
    standings = {each["standing"] for each in json.loads(output.stdout)["workloads"]}
    assert standings == {"agrees", "before", "changed", "outside", "refused"}


def test_of_a_tenant_that_demotes_programs_read_an_answer_and_nothing_else(
    installed: Installed, namespace: str
) -> None:
    """Each pod is judged and booked there, as at its create; but that its name is taken is no news."""
    rows = [{"tier": "gpu-serving", "gpus": 1}]
    with installed.tenant_for("demoting", namespace, quotas=rows, onExceed="Demote"):
        for name in ("web-0", "web-1"):
            assert installed.create(gpu_pod(name, 1, tier="gpu-serving"), namespace).code == 0
        audit = run(installed, "audit", f"--namespace={namespace}", "--output=json")
        diff = run(installed, "policy", "diff", "three-tier", f"--namespace={namespace}", "--output=json")
    assert [each["name"] for each in json.loads(audit.stdout)["workloads"]] == ["web-0", "web-1"]
    assert json.loads(diff.stdout)["objects"] == 2
    assert audit.stderr == diff.stderr == ""


def test_a_cluster_before_gpu_tiers_is_audited_by_a_preset(installed: Installed, contradictions: str) -> None:
    answer = run(installed, "audit", "--policy=four-tier", f"--namespace={contradictions}", "--output=json")
    found = {each["name"]: each for each in json.loads(answer.stdout)["workloads"]}
    assert (found["from-before"]["tier"], found["from-before"]["standing"]) == ("gpu-serving", "before")


def test_what_changes_for_a_cluster(installed: Installed, contradictions: str, tmp_path: Path) -> None:
    new = tmp_path / "new.yaml"
    policy = yaml.safe_load((installed.cluster.folder / "policy.yaml").read_text())
    policy["rules"] = [{"match": {"namespaces": [contradictions]}, "tier": "gpu-batch"}]
    new.write_text(yaml.safe_dump(policy))
    diff = ("policy", "diff", str(new), f"--namespace={contradictions}")
    answer = run(installed, *diff)
    assert (answer.exit_code, answer.stderr) == (1, "")
    expect("policy-diff-cluster", answer.stdout.replace(contradictions, SOME).rstrip("\n"))
    same = run(installed, "policy", "diff", str(installed.cluster.folder / "policy.yaml"), diff[-1])
    assert (same.exit_code, same.stdout.partition("\n")[0]) == (0, "0 of 5 objects change")


@pytest.mark.usefixtures("contradictions")
def test_tenants_are_compared_with_all_of_a_cluster(installed: Installed) -> None:
    answer = run(installed, "policy", "diff", "three-tier")
    assert answer.exit_code == 1
    assert re.search(r'TenantQuota \S+ +Ready +Active → UnknownTier: spec.*unknown tier "gpu-serving"', answer.stdout)
    assert re.search(r"objects change: \d+ (is|are) no longer Ready", answer.stdout)


def test_a_namespace_that_is_not_there(installed: Installed) -> None:
    for command in (("audit",), ("policy", "diff", "three-tier")):
        answer = run(installed, *command, "--namespace=nowhere")
        assert (answer.exit_code, answer.stderr) == (2, "there is no namespace nowhere\n")
