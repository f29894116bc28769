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
    """Wait until a GPU pod, created as a dry run, gets a tier; TimeoutError after READY_SECONDS.

    A new webhook configuration and its caBundle need a moment to reach the API server.
    """

    def gives_a_tier() -> bool:
        answer = cluster.api.create(PROBE, dry_run=True, check=False)
        return not answer.code and "gpu-tiers.dev/tier" in answer.json()["metadata"].get("labels", {})

    wait_until(gives_a_tier, READY_SECONDS, "a GPU pod's tier")
