"""Objects too large, or of too many parts, to be judged: denied with a sentence, for a failure would let them in."""

from pathlib import Path

import pytest

from .installed import Installed, Tree, gpu_pod

pytestmark = pytest.mark.apiserver

CEILING = "gpu-training is not for tenant sizes"
TOO_LARGE = "the object is too large: gpu-tiers reads 20 MiB of a review at most"
TOO_MANY = "object: too large; gpu-tiers judges at most 50,000 fields and list entries and 10 MiB of JSON"
CONTAINERS = "601 containers; gpu-tiers counts GPUs in 500 at most"


def swollen(pod: Tree) -> Tree:
    """One byte each in the request, six in the review: more than 8 MiB."""
    pod["spec"]["containers"][0]["env"] = [{"name": "X", "value": "<" * 1_410_000}]
    return pod


def crowded(pod: Tree, containers: int) -> Tree:
    pod["spec"]["containers"] += [{"name": f"c{number}", "image": "i"} for number in range(containers)]
    return pod


@pytest.mark.parametrize(
    ("pod", "message"),
    [
        (swollen(gpu_pod("swollen", tier="gpu-training")), CEILING),
        (crowded(gpu_pod("crowded"), 600), CONTAINERS),
        (crowded(gpu_pod("storable"), 12_000), TOO_MANY),
        (crowded(gpu_pod("huge"), 70_000), TOO_LARGE),
    ],
    ids=["six bytes for one", "containers", "as many as can be stored", "more than can be stored"],
)
def test_a_large_pod_is_denied_with_a_sentence(installed: Installed, namespace: str, pod: Tree, message: str) -> None:
    installed.tenant("sizes", namespace, maxTier="gpu-serving")
    try:
        refused = installed.create(pod, namespace)
        assert "denied the request: " in refused.stderr
        assert message in refused.stderr
    finally:
        installed.api.delete("tenantquota/sizes")


def megabytes(installed: Installed) -> int:
    """Return the memory of the webhook's process."""
    status = Path(f"/proc/{installed.process.popen.pid}/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1]) // 1024


def test_forged_references_to_one_large_owner_fill_no_memory(installed: Installed, namespace: str) -> None:
    """Each is read, and none is the owner that it names: it was kept nevertheless, one for each UID."""
    template = gpu_pod("unused", restartPolicy="Never")
    template["spec"]["containers"][0]["env"] = [{"name": "X", "value": "x" * 1_400_000}]
    spec = {"suspend": True, "template": {"spec": template["spec"]}}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "large"}, "spec": spec}
    assert installed.create(job, namespace).code == 0
    pods = [gpu_pod(f"pod-{number}") for number in range(80)]
    for number, pod in enumerate(pods):
        uid = f"4d5f1c2a-0000-4000-8000-{number:012}"
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "large", "uid": uid, "controller": True}
        pod["metadata"]["ownerReferences"] = [owner]
    before = megabytes(installed)
    refused = installed.create({"apiVersion": "v1", "kind": "List", "items": pods}, namespace, dry_run=True)
    assert refused.stderr.count("owner Job/large has another UID than the reference to it") == len(pods)
    assert megabytes(installed) < before + 60
