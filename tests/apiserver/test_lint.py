"""`gpu-tiers lint` of a cluster in which several things are wrong."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .asking import ids, kubeconfig_of, ours
from .asking import lint as run
from .groups import a_gang, apply_gang, runs_whole
from .installed import Installed, gpu_pod

pytestmark = pytest.mark.apiserver

GOLDEN = Path(__file__).parent / "answers" / "lint.txt"

URGENT = {
    "apiVersion": "scheduling.k8s.io/v1",
    "kind": "PriorityClass",
    "metadata": {"name": "lint-urgent"},
    "value": 500,
}
LATER = {
    "apiVersion": "admissionregistration.k8s.io/v1",
    "kind": "MutatingWebhookConfiguration",
    "metadata": {"name": "zzz-lint"},
    "webhooks": [
        {
            "name": "sidecars.example.com",
            "clientConfig": {"url": "https://127.0.0.1:1"},
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["CREATE"]}],
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "nowhere"}},
            "failurePolicy": "Ignore",
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
        }
    ],
}
BUDGET = {
    "apiVersion": "policy/v1",
    "kind": "PodDisruptionBudget",
    "metadata": {"name": "notebooks"},
    "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "notebook"}}},
}


def pytorchjob(workers: int, tier: str) -> dict[str, Any]:
    """A gang of so many pods with a GPU each."""
    container = {"name": "pytorch", "image": "registry.example/train:1", "resources": {"limits": {"nvidia.com/gpu": 1}}}
    template = {"metadata": {"labels": {"gpu-tiers.dev/tier": tier}}, "spec": {"containers": [container]}}
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {"name": "tune"},
        "spec": {"pytorchReplicaSpecs": {"Worker": {"replicas": workers, "template": template}}},
    }


@pytest.fixture
def mistakes(installed: Installed, namespace: str, node: str) -> Iterator[str]:
    """A cluster with a foreign class, a later webhook, a quota of 900 GPUs, a gang without hope, and no CPU left."""
    cluster, tenant = installed.cluster, f"tenant-{namespace}"
    installed.tenant(tenant, namespace, quotas=[{"gpus": 900}, {"tier": "gpu-interactive", "gpus": 2}], onExceed="Warn")
    cluster.api.apply(URGENT)
    cluster.api.apply(LATER)
    on_node = {"nodeSelector": {"kubernetes.io/hostname": node}}
    notebook = gpu_pod("notebook", 1, tier="gpu-interactive", node=node, terminationGracePeriodSeconds=1200)
    notebook["metadata"]["labels"]["app"] = "notebook"
    hungry = gpu_pod("hungry", 0, **on_node)
    hungry["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "990"}}
    train = gpu_pod("train", 1, tier="gpu-training", node=node)
    train["spec"]["containers"][0]["command"] = ["torchrun", "train.py"]
    for tree in (BUDGET, notebook, hungry, train, pytorchjob(4, "gpu-interactive")):
        created = installed.create(tree, namespace)
        assert created.code == 0, created.stderr
    for pod in ("notebook", "hungry", "train"):
        installed.eventually(lambda pod=pod: "nodeName" in installed.get(f"pod/{pod}", namespace)["spec"], pod)  # type: ignore[misc]
    yield tenant
    cluster.api.delete("priorityclass/lint-urgent")
    cluster.api.delete("mutatingwebhookconfiguration/zzz-lint")
    cluster.api.delete(f"tenantquota/{tenant}")


def test_each_mistake_is_reported_with_its_path(installed: Installed, namespace: str, node: str, mistakes: str) -> None:
    answer = run(installed, "--output=json")
    assert (answer.exit_code, answer.stderr) == (0, ""), "warnings alone fail nobody"
    found = "\n".join(ours(answer, namespace, "lint-urgent", "zzz-lint"))
    shown = found.replace(node, "NODE").replace(mistakes, "TENANT").replace(namespace, "NAMESPACE")
    assert re.sub(r"cluster has \d+", "cluster has N", shown) == GOLDEN.read_text().rstrip("\n")
    assert json.loads(answer.stdout)["notChecked"] == [], "an administrator may read all of it"
    assert {"never-holds-gangs", "listeners-unseen", "serving-below-others"} <= ids(answer), "of the whole cluster"


@pytest.mark.usefixtures("mistakes")
def test_a_pipeline_chooses_what_fails_it(installed: Installed) -> None:
    assert run(installed, "--fail-on=warning").exit_code == 1
    table = run(installed, "--ignore=class-above-tiers")
    assert table.exit_code == 0
    assert table.stdout.startswith("Warnings\nID ")
    assert "class-above-tiers" not in table.stdout
    assert "later-webhook: Rename the configuration so that its name sorts first. See " in table.stdout


def test_a_broken_installation_is_an_error(installed: Installed) -> None:
    cluster = installed.cluster
    stored = cluster.api.get("validatingwebhookconfiguration/zz-gpu-tiers")
    cluster.api.delete("validatingwebhookconfiguration/zz-gpu-tiers")
    try:
        answer = run(installed, "--output=json")
        assert answer.exit_code == 1
        (line,) = ours(answer, "ValidatingWebhookConfiguration")
        assert line.endswith(
            "ValidatingWebhookConfiguration: gpu-tiers has none: nothing is refused, and no quota holds"
        )
    finally:
        for field in ("uid", "resourceVersion", "creationTimestamp", "generation", "managedFields"):
            stored["metadata"].pop(field, None)
        cluster.api.create(stored)


@pytest.mark.usefixtures("mistakes")
def test_what_may_not_be_read_is_named_and_the_rest_is_checked(installed: Installed, namespace: str) -> None:
    cluster, name = installed.cluster, f"lint-{namespace}"
    cluster.api.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "reader"}}, namespace)
    cluster.kubectl("create", "clusterrole", name, "--verb=list", "--resource=configmaps,priorityclasses,tenantquotas")
    installed.bind(name, name, "reader", namespace, everywhere=True)
    try:
        answer = run(installed, "--output=json", kubeconfig=str(kubeconfig_of(installed, "reader", namespace)))
        assert answer.exit_code == 0, answer.stderr
        assert [line.split(": ")[1] for line in ours(answer, "lint-urgent")] == ["class-above-tiers"]
        left = {each["needs"]: each["rules"] for each in json.loads(answer.stdout)["notChecked"]}
        assert left["the right to list pods in all namespaces"] == [
            "pods-without-tier",
            "unknown-label",
            "bound-unheard",
            "training-without-hook",
            "grace-beyond-autoscaler",
            "listeners-unseen",
            "evicted-by-age",
        ]
        assert "webhook-missing" in left["the right to list webhook configurations (admissionregistration.k8s.io)"]
        cluster.api.delete(f"clusterrolebinding/{name}")
        installed.bind(name, "gpu-tiers-cluster-reader", "reader", namespace, everywhere=True)
        answer = run(installed, "--output=json", kubeconfig=str(kubeconfig_of(installed, "reader", namespace)))
        assert answer.exit_code == 0, answer.stderr
        left = [each["needs"] for each in json.loads(answer.stdout)["notChecked"]]
        pods, certificate = sorted(left)
        assert pods.startswith("the right to create pods in default, for a dry run (pods is forbidden: User ")
        assert certificate == "the right to get the Secret with the certificate", "the platform team's ClusterRole"
    finally:
        cluster.api.delete(f"clusterrole/{name}", f"clusterrolebinding/{name}")


def test_a_rule_that_is_none(installed: Installed) -> None:
    answer = run(installed, "--ignore=no-such-rule")
    assert answer.exit_code == 2
    assert answer.stderr.startswith(
        '--ignore: "no-such-rule" is no rule; the rules are address-incomplete, boost-ignored, bound-unheard, '
    )


def test_a_gang_that_a_pod_alone_may_break_is_reported_on_1_36(
    installed: Installed, namespace: str, node: str, version: str
) -> None:
    apply_gang(installed, namespace, a_gang(version, "sweep", "gpu-batch", node))
    installed.eventually(lambda: runs_whole(installed, namespace, "sweep"), "the gang")
    assert installed.create(gpu_pod("urgent", 1, tier="gpu-training"), namespace).code == 0
    findings = ours(run(installed, "--output=json"), f"PodGroup/sweep in {namespace}")
    assert bool(findings) is version.endswith("v1alpha2")
    assert all(line.startswith("warning: gang-broken-by-pods: ") and "may evict it" in line for line in findings)
