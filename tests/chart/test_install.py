"""Installing and uninstalling the chart on a real API server."""

import pytest

from tests.builders.claims import a_device_class

from .asking import GPU, GPU_POD, pod, try_create
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
    assert "`gpu-tiers policy diff POLICY_FILE` names the workloads and TenantQuotas that it breaks" in notes
    assert classes_of(release) == CLASSES
    quota = release.get("tenantquota", "alpha")["spec"]
    assert (quota["onExceed"], quota["quotaAuthority"]) == ("Deny", "gpu-tiers")


def test_the_notes_fit_the_tenants_that_are_there_and_name_the_role_of_researchers(release: Release) -> None:
    bare = release.install(mode="Enforce").stdout
    assert "tenants    none among the values\n" in bare
    assert "Give each tenant a TenantQuota" in bare
    assert "kubectl create clusterrolebinding gpu-tiers-readers --clusterrole=gpu-tiers-reader" in bare
    full = release.upgrade(mode="Enforce", tenants=[ALPHA], rbac={"reader": {"groups": ["researchers"]}}).stdout
    assert "tenants    alpha\n" in full
    assert "Give each tenant" not in full
    assert "the tenants above" in full.splitlines()[-1], "of uninstall"
    assert "gpu-tiers-reader, for `gpu-tiers explain` and the like, is bound to researchers" in full
    may = ["auth", "can-i", "list", "nodes", "--as=ada", "--as-group=researchers"]
    assert release.cluster.kubectl(*may, check=False).stdout == "yes\n"


def test_the_notes_recommend_preemption_where_gpus_come_by_dra(release: Release) -> None:
    recommended = "--set policy.preemption.dra=On"
    assert recommended not in release.install().stdout
    network, gpus = a_device_class("nic.example.com", "true").json(), a_device_class("gpu.example.com", "true").json()
    release.cluster.api.apply(network)
    try:
        assert recommended not in release.upgrade().stdout
        release.cluster.api.apply(gpus)
        notes = release.upgrade().stdout
        assert "kube-scheduler evicts nobody for GPUs by DRA (DeviceClass gpu.example.com)" in notes
        assert recommended in notes
        assert recommended not in release.upgrade(policy={"preemption": {"dra": "On"}}).stdout
    finally:
        release.cluster.api.delete("deviceclass/nic.example.com", "deviceclass/gpu.example.com")


def test_the_notes_of_an_upgrade_name_the_mode_that_it_replaces(release: Release) -> None:
    assert "before" not in release.install(mode="Enforce").stdout.partition("\n\n")[0]
    assert "in mode Enforce.\n" in release.upgrade(mode="Enforce").stdout
    assert "in mode Audit (the mode was Enforce before).\n" in release.upgrade(mode="Audit").stdout


def test_uninstall_takes_the_webhook_and_leaves_what_pods_and_tenants_need(release: Release) -> None:
    release.install()
    release.uninstall()
    assert CONFIGURATION not in release.names("validatingwebhookconfiguration")
    assert CONFIGURATION not in release.names("mutatingwebhookconfiguration")
    assert classes_of(release) == CLASSES
    assert CRD in release.names("crd")

    with_class = pod(main=GPU, priorityClassName="gpu-training")
    priorities = [try_create(release.cluster, "default", each).json() for each in (GPU_POD, with_class)]
    assert [each["spec"]["priority"] for each in priorities] == [0, 1000]
    release.cluster.kubectl("delete", "priorityclasses", "-l", "app.kubernetes.io/instance=gpu-tiers")
    refused = try_create(release.cluster, "default", with_class)
    assert "no PriorityClass with name gpu-training was found" in refused.stderr

    release.install()
    assert CONFIGURATION in release.names("validatingwebhookconfiguration")
    assert classes_of(release) == CLASSES


def test_a_class_that_was_there_before_serves_as_well(release: Release) -> None:
    release.cluster.api.apply(priority_class("gpu-batch", 400, description="ours since 2024"))
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
    release.cluster.api.apply(there)
    refusal = release.try_install(NAME)
    assert reason in refusal.stderr
    assert "kubectl delete priorityclass gpu-batch" in refusal.stderr
    assert classes_of(release) == {"gpu-batch"}
    assert CONFIGURATION not in release.names("validatingwebhookconfiguration")


def test_under_another_name_the_crd_stays_with_the_documented_release(release: Release) -> None:
    first = release.try_install(OTHER, tenants=[ALPHA])
    assert not first.code, first.stderr
    assert "helm show crds" in first.stdout
    assert release.names("tenantquota") == ["alpha"]
    assert "zz-other-gpu-tiers" in release.names("validatingwebhookconfiguration")
