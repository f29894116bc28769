"""GPUs by resource claims on a real API server: counted at the workload, hooked, and a shared claim counted once."""

import json
from collections.abc import Sequence

import pytest

from tests.builders.claims import a_claim, a_claim_template

from .installed import Installed, Tree, gpu_pod

pytestmark = pytest.mark.apiserver


def claiming(name: str, node: str | None = None, *, schedulingGates: Sequence[Tree] = (), **source: str) -> Tree:  # noqa: N803
    """A pod whose container gets its GPUs by a claim."""
    claims = [{"name": "gpu", **source}]
    pod = gpu_pod(name, tier="gpu-batch", node=node, resourceClaims=claims, schedulingGates=schedulingGates)
    pod["spec"]["containers"][0]["resources"] = {"claims": [{"name": "gpu"}]}
    return pod


def job(name: str, parallelism: int) -> Tree:
    pod = claiming("", resourceClaimTemplateName="gpus")
    pod["spec"]["restartPolicy"] = "Never"
    metadata = {"labels": pod["metadata"]["labels"], "annotations": {"gpu-tiers.dev/checkpoint": "file"}}
    made = {"metadata": metadata, "spec": pod["spec"]}
    spec = {"parallelism": parallelism, "completions": parallelism, "template": made}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": spec}


def pods_of(installed: Installed, namespace: str, owner: str) -> list[Tree]:
    items: list[Tree] = installed.get("pods", namespace)["items"]
    return [pod for pod in items if pod["metadata"]["name"].startswith(f"{owner}-")]


def test_a_job_is_refused_for_the_gpus_of_its_template(installed: Installed, namespace: str, tenant: str) -> None:
    assert installed.create(a_claim_template("gpus", 1).unplaced(), namespace).code == 0
    refused = installed.create(job("too-wide", 3), namespace)
    assert f"tenant {tenant}: the total allows 2 GPUs; this Job asks for 3 in all" in refused.stderr
    assert installed.create(job("fits", 2), namespace).code == 0
    installed.eventually(lambda: installed.usage(tenant) == "total 2/2", "both pods of the Job")


def test_a_job_may_come_before_its_template(installed: Installed, namespace: str, tenant: str) -> None:
    created = installed.create(job("early", 1), namespace)
    assert created.code == 0
    assert created.stderr.strip() == (
        "Warning: ResourceClaimTemplate/gpus does not exist, so GPUs that the claim may ask for are not counted; "
        "the pods are refused until the claim can be read"
    )
    refusal = "ResourceClaimTemplate/gpus does not exist"
    installed.eventually(lambda: refusal in installed.messages(namespace, "reason=FailedCreate"), "the refusal")
    assert installed.create(a_claim_template("gpus", 2).unplaced(), namespace).code == 0
    installed.eventually(lambda: bool(pods_of(installed, namespace, "early")), "the Job's pod")
    (pod,) = pods_of(installed, namespace, "early")
    assert "/run/gpu-tiers" in json.dumps(pod["spec"]["containers"][0]["lifecycle"]["preStop"])
    installed.eventually(lambda: installed.usage(tenant) == "total 2/2", "the GPUs of its claim")


def test_a_claim_that_pods_share_counts_until_the_last_is_gone(
    installed: Installed, namespace: str, tenant: str
) -> None:
    assert installed.create(a_claim("pair", 2).unplaced(), namespace).code == 0
    for name in ("one", "two"):
        assert installed.create(claiming(name, resourceClaimName="pair"), namespace).code == 0
    installed.eventually(lambda: installed.usage(tenant) == "total 2/2", "the claim in the status")
    more = installed.create(gpu_pod("more", tier="gpu-batch"), namespace)
    assert "the total is at 2 of 2 GPUs; this pod asks for 1" in more.stderr
    for name, used in (("one", "total 2/2"), ("two", "total 0/2")):
        installed.api.delete(f"pod/{name}", namespace=namespace, seconds=0)
        installed.eventually(lambda used=used: installed.usage(tenant) == used, used)  # type: ignore[misc]


@pytest.mark.usefixtures("tenant")
def test_who_monitors_counts_as_in_the_in_tree_quota(installed: Installed, namespace: str) -> None:
    installed.api.label(f"namespace/{namespace}", {"resource.kubernetes.io/admin-access": "true"})
    assert installed.create(a_claim_template("monitor", 3, adminAccess=True).unplaced(), namespace).code == 0
    refused = installed.create(claiming("dcgm", resourceClaimTemplateName="monitor"), namespace)
    assert "the total allows 2 GPUs; this pod asks for 3" in refused.stderr


def test_a_pod_counts_when_its_template_is_gone(installed: Installed, namespace: str, tenant: str) -> None:
    """Objects made of the template exist as long as the pod, and a webhook that starts again reads them."""
    assert installed.create(a_claim_template("gpus", 2).unplaced(), namespace).code == 0
    assert installed.create(claiming("holds", resourceClaimTemplateName="gpus"), namespace).code == 0
    installed.eventually(
        lambda: "resourceClaimStatuses" in installed.get("pod/holds", namespace)["status"], "the claim that is made"
    )
    installed.api.delete("resourceclaimtemplate/gpus", namespace=namespace)
    installed.change_leader()
    installed.eventually(
        lambda: "the total is at 2 of 2 GPUs" in installed.create(gpu_pod("more"), namespace).stderr, "both GPUs"
    )
    late = installed.create(claiming("late", resourceClaimTemplateName="gpus"), namespace)
    assert "ResourceClaimTemplate/gpus does not exist, so gpu-tiers can't choose a tier" in late.stderr
    installed.eventually(lambda: installed.usage(tenant) == "total 2/2", "the count")


def test_in_audit_the_claim_of_a_pod_is_no_mistake(installed: Installed, namespace: str, tenant: str) -> None:
    """Such a pod does not say what it was admitted with: nothing was written on it."""
    assert tenant
    assert installed.create(a_claim_template("gpus", 1).unplaced(), namespace).code == 0
    with installed.policy_with(mode="Audit"):
        before = installed.metric("gpu_tiers_would_refuse_total")
        assert installed.create(claiming("audited", resourceClaimTemplateName="gpus"), namespace).code == 0
        installed.eventually(lambda: bool(installed.get("resourceclaims", namespace)["items"]), "its claim")
        assert installed.metric("gpu_tiers_would_refuse_total") == before
