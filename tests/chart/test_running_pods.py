"""What the dead webhook of an enforcing installation means for GPU pods that run already."""

import json

import pytest

from .asking import GPU, pod, wait_until_gpu_pods_are
from .helm import Manifest
from .release import Release

pytestmark = pytest.mark.apiserver


def test_pods_from_before_live_and_die_as_they_did(release: Release, namespace: str) -> None:
    cluster, here = release.cluster, f"--namespace={namespace}"
    running = pod(main=GPU, labels={"gpu-tiers.dev/tier": "gpu-batch"})
    running["metadata"] |= {"name": "running", "finalizers": ["example.com/held"]}
    cluster.kubectl("create", here, "-f", "-", input=json.dumps(running))
    release.install(mode="Enforce")
    wait_until_gpu_pods_are(cluster, refused=True)

    cluster.kubectl("label", "pod", "running", "team=alpha", here)
    relabel = ("label", "pod", "running", "gpu-tiers.dev/tier=gpu-training", "--overwrite", here)
    drift = cluster.kubectl(*relabel, check=False)
    assert 'failed calling webhook "pods-update.validate.gpu-tiers.dev"' in drift.stderr

    cluster.kubectl("delete", "pod", "running", "--wait=false", "--grace-period=0", "--force", here)
    bare = '{"metadata": {"labels": null, "finalizers": null}}'
    cluster.kubectl("patch", "pod", "running", "-p", bare, "--type=merge", here)
    cluster.kubectl("wait", "--for=delete", "pod/running", here, "--timeout=240s")


def test_claims_from_before_stay_as_they_are(release: Release, namespace: str) -> None:
    """Their status, finalizers and end are the scheduler's; one that becomes a pod's is asked about."""
    cluster, here = release.cluster, f"--namespace={namespace}"
    cluster.kubectl("create", here, "-f", "-", input=json.dumps(claim("before")))
    release.install(mode="Enforce")
    wait_until_gpu_pods_are(cluster, refused=True)

    def changed(*arguments: str, **metadata: object) -> str:
        patch = json.dumps({"metadata": metadata, "status": {"reservedFor": []}})
        command = ("patch", "resourceclaim", "before", here, "--type=merge", f"--patch={patch}", *arguments)
        return cluster.kubectl(*command, check=False).stderr

    asked = 'failed calling webhook "resourceclaims.validate.gpu-tiers.dev"'
    made = cluster.kubectl("create", here, "-f", "-", input=json.dumps(claim("after")), check=False)
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "x", "uid": "4d5f1c2a-0000-4000-8000-000000000000"}
    assert asked in made.stderr
    assert asked in changed(ownerReferences=[owner])
    assert asked in changed(annotations={"resource.kubernetes.io/pod-claim-name": "gpu"})
    assert (changed(finalizers=["example.com/held"]), changed("--subresource=status")) == ("", "")
    cluster.kubectl("delete", "resourceclaim", "before", "--wait=false", here)
    assert changed(finalizers=[]) == ""


def claim(name: str) -> Manifest:
    exactly = {"deviceClassName": "gpu.nvidia.com", "allocationMode": "ExactCount", "count": 1}
    spec = {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}}
    metadata = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": name}}
    return {**metadata, "spec": spec}
