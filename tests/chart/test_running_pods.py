"""A dead webhook of an enforcing installation, and the GPU pods that run already."""

import pytest

from localcluster.waiting import wait_until
from tests.builders.claims import a_claim

from .asking import GPU, pod, wait_until_gpu_pods_are
from .release import Release

pytestmark = pytest.mark.apiserver


def test_pods_from_before_live_and_die_as_they_did(release: Release, namespace: str) -> None:
    cluster = release.cluster
    running = pod(main=GPU, labels={"gpu-tiers.dev/tier": "gpu-batch"})
    running["metadata"] |= {"name": "running", "finalizers": ["example.com/held"]}
    cluster.api.create(running, namespace)
    release.install(mode="Enforce")
    wait_until_gpu_pods_are(cluster, refused=True)

    cluster.api.label("pod/running", {"team": "alpha"}, namespace)
    drift = cluster.api.label("pod/running", {"gpu-tiers.dev/tier": "gpu-training"}, namespace, check=False)
    assert 'failed calling webhook "pods-update.validate.gpu-tiers.dev"' in drift.stderr

    cluster.api.delete("pod/running", namespace=namespace, seconds=0, wait=False)
    cluster.api.patch("pod/running", {"metadata": {"labels": None, "finalizers": None}}, namespace)
    wait_until(lambda: not cluster.api.has("pod/running", namespace), 240, "its end")


def test_claims_from_before_stay_as_they_are(release: Release, namespace: str) -> None:
    """Their status, finalizers and end are the scheduler's; one that becomes a pod's is asked about."""
    cluster = release.cluster
    cluster.api.create(a_claim("before").unplaced(), namespace)
    release.install(mode="Enforce")
    wait_until_gpu_pods_are(cluster, refused=True)

    def changed(part: str = "", **metadata: object) -> str:
        patch = {"metadata": metadata, "status": {"reservedFor": []}}
        return cluster.api.patch("resourceclaim/before", patch, namespace, part=part, check=False).stderr

    asked = 'failed calling webhook "resourceclaims.validate.gpu-tiers.dev"'
    made = cluster.api.create(a_claim("after").unplaced(), namespace, check=False)
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "x", "uid": "4d5f1c2a-0000-4000-8000-000000000000"}
    assert asked in made.stderr
    assert asked in changed(ownerReferences=[owner])
    assert asked in changed(annotations={"resource.kubernetes.io/pod-claim-name": "gpu"})
    assert (changed(finalizers=["example.com/held"]), changed("status")) == ("", "")
    cluster.api.delete("resourceclaim/before", namespace=namespace, wait=False)
    assert changed(finalizers=[]) == ""
