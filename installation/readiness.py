"""Waits until the API server calls the webhook."""

from localcluster import Cluster
from localcluster.waiting import wait_until

READY_SECONDS = 240
PROBE = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "probe", "namespace": "default"},
    "spec": {"containers": [{"name": "probe", "image": "probe", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]},
}


def wait_for_webhook(cluster: Cluster) -> None:
    """Wait until the API server calls it, because a new configuration and its caBundle need a moment to arrive."""

    def gives_a_tier() -> bool:
        answer = cluster.api.create(PROBE, dry_run=True, check=False)
        return not answer.code and "gpu-tiers.dev/tier" in answer.json()["metadata"].get("labels", {})

    wait_until(gives_a_tier, READY_SECONDS, "a GPU pod's tier")
