"""Deletes CRDs, which an API server may forget half-way."""

import time

from localcluster.cluster import Cluster
from localcluster.waiting import wait_until

GONE_SECONDS = 60


def delete_crd(cluster: Cluster, name: str) -> None:
    """Delete a CRD and wait until it is gone; TimeoutError after a minute.

    Where its storage was just being set up ("storage is (re)initializing"), the finalizer's second try may meet its
    own change of the status as a conflict, and it looks again only when something else of the CRD changes, or in
    five minutes (crd_finalizer.go in apiextensions-apiserver, 1.37.1). So something is changed until it is gone.
    """
    cluster.kubectl("delete", "crd", name, "--wait=false")

    def gone() -> bool:
        nudge = f"gpu-tiers.dev/nudged={time.monotonic_ns()}"
        nudged = cluster.kubectl("annotate", "crd", name, nudge, "--overwrite", check=False)
        return bool(nudged.code) and "NotFound" in nudged.stderr

    wait_until(gone, GONE_SECONDS, f"customresourcedefinition/{name} to be gone", pause=0.3)
