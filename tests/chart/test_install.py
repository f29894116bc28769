"""Installing, upgrading and uninstalling the chart on a real API server."""

import base64
import json

import pytest

from .asking import pod, try_create
from .conftest import Render
from .helm import Manifest
from .release import CONFIGURATION, NAME, OTHER, Release

pytestmark = pytest.mark.apiserver

CRD = "tenantquotas.gpu-tiers.dev"
TIERS = ("gpu-training", "gpu-serving", "gpu-batch", "gpu-interactive")
CLASSES = {f"{tier}{twin}" for tier in TIERS for twin in ("", "-nonpreempting")}
ALPHA: Manifest = {
    "name": "alpha",
    "spec": {
        "namespaceSelector": {"matchLabels": {"example.com/tenant": "alpha"}},
        "maxTier": "gpu-training",
        "quotas": [{"gpus": "16"}, {"tier": "gpu-training", "gpus": "6"}],
    },
}


def priority_class(name: str, value: int, **more: object) -> Manifest:
    kind = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
    return {**kind, "metadata": {"name": name}, "value": value, **more}


def classes_of(release: Release) -> set[str]:
    return {name for name in release.names("priorityclass") if not name.startswith("system-")}


def test_one_command_installs_everything_tenants_included(release: Release) -> None:
    notes = release.install(tenants=[ALPHA]).stdout
    assert "in mode Audit" in notes
    assert "--set mode=Warn --set adoption=true" in notes
    assert classes_of(release) == CLASSES
    quota = release.get("tenantquota", "alpha")["spec"]
    assert (quota["onExceed"], quota["quotaAuthority"]) == ("Deny", "gpu-tiers")


def test_everything_that_runs_is_accepted_by_the_api_server(release: Release) -> None:
    release.install(webhook={"url": ""}, mode="Enforce")
    deployment = release.get("deployment", "gpu-tiers", "--namespace=gpu-tiers")
    assert deployment["spec"]["strategy"]["type"] == "Recreate"
    account = "--as=system:serviceaccount:gpu-tiers:gpu-tiers"
    for question, answer in {
        "patch tenantquotas --subresource=status": "yes",
        "list pods": "yes",
        "get jobs.batch": "yes",
        "list secrets --namespace=gpu-tiers": "no",
        "get secret/gpu-tiers-tls --namespace=gpu-tiers": "yes",
        "get secret/another --namespace=gpu-tiers": "no",
        f"patch validatingwebhookconfigurations/{CONFIGURATION}": "yes",
        "patch validatingwebhookconfigurations/another": "no",
        "patch pods": "no",
    }.items():
        said = release.cluster.kubectl("auth", "can-i", *question.split(), account, check=False).stdout
        assert said.strip() == answer, question


def test_an_upgrade_changes_a_tenant_and_a_later_one_removes_it(release: Release) -> None:
    release.install(tenants=[ALPHA])
    before = release.get("tenantquota", "alpha")["metadata"]["uid"]
    release.upgrade(tenants=[{"name": "alpha", "spec": ALPHA["spec"] | {"onExceed": "Demote"}}])
    after = release.get("tenantquota", "alpha")
    assert (after["metadata"]["uid"], after["spec"]["onExceed"]) == (before, "Demote")
    release.upgrade()
    assert release.names("tenantquota") == []


def test_an_upgrade_leaves_alone_what_the_webhook_wrote(release: Release) -> None:
    release.install()
    trust = base64.b64encode(b"a CA").decode()
    release.cluster.kubectl(
        "patch", "secret", "gpu-tiers-tls", "-n", "gpu-tiers", "-p", f'{{"data": {{"ca.crt": "{trust}"}}}}'
    )
    trusting = f'{{"webhooks": [{{"name": "pods.validate.gpu-tiers.dev", "clientConfig": {{"caBundle": "{trust}"}}}}]}}'
    release.cluster.kubectl("patch", "validatingwebhookconfiguration", CONFIGURATION, "-p", trusting)
    release.upgrade(mode="Enforce", logLevel="debug", exemptNamespaces=["kube-system"])
    assert release.get("secret", "gpu-tiers-tls", "-n", "gpu-tiers")["data"] == {"ca.crt": trust}
    gate = release.entries()["pods.validate.gpu-tiers.dev"]
    assert (gate["failurePolicy"], gate["clientConfig"]["caBundle"]) == ("Fail", trust)


def test_an_upgrade_brings_a_changed_crd_back_in_line(release: Release) -> None:
    release.install()
    hide = '[{"op": "replace", "path": "/spec/names/shortNames", "value": []}]'
    release.cluster.kubectl("patch", "crd", CRD, "--type=json", "-p", hide)
    release.upgrade()
    assert release.get("crd", CRD)["spec"]["names"]["shortNames"] == ["tq"]


def test_uninstall_takes_the_webhook_and_leaves_what_pods_and_tenants_need(release: Release) -> None:
    release.install()
    release.uninstall()
    assert CONFIGURATION not in release.names("validatingwebhookconfiguration")
    assert CONFIGURATION not in release.names("mutatingwebhookconfiguration")
    assert classes_of(release) == CLASSES
    assert CRD in release.names("crd")
    release.install()
    assert CONFIGURATION in release.names("validatingwebhookconfiguration")


def test_a_class_that_was_there_before_serves_as_well(release: Release) -> None:
    release.cluster.apply(json.dumps(priority_class("gpu-batch", 400, description="ours since 2024")))
    release.install()
    release.upgrade()
    assert release.get("priorityclass", "gpu-batch")["description"] == "ours since 2024"
    assert classes_of(release) == CLASSES
    release.uninstall()
    assert "gpu-batch" in classes_of(release)


@pytest.mark.parametrize(
    ("there", "reason"),
    [
        (priority_class("gpu-batch", 500), "PriorityClass gpu-batch exists with value 500, and the policy says 400"),
        (
            priority_class("gpu-batch", 400, preemptionPolicy="Never"),
            "PriorityClass gpu-batch exists with preemptionPolicy Never",
        ),
        (priority_class("gpu-batch", 400, globalDefault=True), "PriorityClass gpu-batch exists and is globalDefault"),
    ],
    ids=["value", "preemptionPolicy", "globalDefault"],
)
def test_a_class_that_can_not_serve_is_refused_before_anything_is_applied(
    release: Release, there: Manifest, reason: str
) -> None:
    release.cluster.apply(json.dumps(there))
    refusal = release.try_install(NAME)
    assert reason in refusal.stderr
    assert "kubectl delete priorityclass gpu-batch" in refusal.stderr
    assert classes_of(release) == {"gpu-batch"}
    assert CONFIGURATION not in release.names("validatingwebhookconfiguration")


def test_a_changed_tier_value_is_refused_before_anything_is_applied(release: Release) -> None:
    release.install()
    tiers = [{"name": "gpu-training", "value": 2000}, {"name": "gpu-batch", "value": 400}]
    refusal = release.try_upgrade(mode="Enforce", policy={"tiers": tiers, "defaultTier": "gpu-batch"})
    assert refusal.code
    assert "PriorityClass gpu-training exists with value 1000, and the policy says 2000" in refusal.stderr
    assert release.entries()["pods.validate.gpu-tiers.dev"]["failurePolicy"] == "Ignore"
    assert release.get("priorityclass", "gpu-training")["value"] == 1000


def test_what_the_refusal_says_works(release: Release) -> None:
    release.install()
    release.cluster.kubectl("delete", "priorityclass", "gpu-training", "gpu-training-nonpreempting")
    release.upgrade(policy={"tiers": [{"name": "gpu-training", "value": 2000}], "defaultTier": "gpu-training"})
    assert release.get("priorityclass", "gpu-training")["value"] == 2000
    assert "gpu-batch" in classes_of(release), "pods may name it still"


def test_under_another_name_the_crd_stays_with_the_documented_release(release: Release) -> None:
    first = release.try_install(OTHER, tenants=[ALPHA])
    assert not first.code, first.stderr
    assert "helm show crds" in first.stdout
    assert release.names("tenantquota") == ["alpha"]
    assert "zz-other-gpu-tiers" in release.names("validatingwebhookconfiguration")


def test_its_own_pods_meet_the_restricted_standard(release: Release, render: Render) -> None:
    release.install(webhook={"url": ""})
    restricted = "pod-security.kubernetes.io/enforce=restricted"
    release.cluster.kubectl("label", "namespace", "gpu-tiers", restricted)
    chart = render()
    template = chart.one("Deployment")["spec"]["template"] | {"apiVersion": "v1", "kind": "Pod"}
    template["metadata"] = template["metadata"] | {"name": "webhook"}
    for manifest in (template, chart.one("Pod")):
        answer = try_create(release.cluster, "gpu-tiers", manifest)
        assert not answer.code, answer.stderr
    refused = try_create(release.cluster, "gpu-tiers", pod())
    assert "violates PodSecurity" in refused.stderr
    release.cluster.kubectl("label", "namespace", "gpu-tiers", "pod-security.kubernetes.io/enforce-")
