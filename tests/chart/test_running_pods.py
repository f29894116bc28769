"""What the dead webhook of an enforcing installation means for GPU pods that run already."""

import json

import pytest

from .asking import GPU, pod, wait_until_gpu_pods_are
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
    cluster.kubectl("wait", "--for=delete", "pod/running", here, "--timeout=30s")
