"""Adds CRDs, whose objects an API server serves a moment later, and deletes them, which it may forget half-way."""

import json
import time
from collections.abc import Mapping
from typing import Any

from localcluster.cluster import Cluster
from localcluster.waiting import wait_until

SERVED_SECONDS = 180
GONE_SECONDS = 60


def add_crds(cluster: Cluster, *crds: Mapping[str, Any]) -> None:
    """Apply CRDs by the server, and wait until the objects of each served version can be listed; or TimeoutError.

    To wait for Established is not enough: `kubectl wait` fails for a CRD without any condition yet, and discovery comes
    later.
    """
    cluster.apply(json.dumps({"apiVersion": "v1", "kind": "List", "items": crds}), "--server-side", "--force-conflicts")
    kinds = ",".join(kind for crd in crds for kind in _served(crd["spec"]))
    listed = ("get", kinds, "--all-namespaces", "--output=name")
    wait_until(lambda: not cluster.kubectl(*listed, check=False).code, SERVED_SECONDS, f"{kinds} to be served")


def _served(spec: Mapping[str, Any]) -> list[str]:
    plural, group = spec["names"]["plural"], spec["group"]
    return [f"{plural}.{version['name']}.{group}" for version in spec["versions"] if version["served"]]


def delete_crd(cluster: Cluster, name: str) -> None:
    """Delete a CRD and wait until it is gone; TimeoutError after a minute.

    If the CRD's storage was just being set up ("storage is (re)initializing"), the finalizer's second try may meet its
    own change of the status as a conflict. The finalizer looks again only when something else of the CRD changes, or in
    five minutes (crd_finalizer.go in apiextensions-apiserver, 1.37.1). So an annotation is changed until it is gone.
    """
    cluster.api.delete(f"crd/{name}", wait=False)

    def gone() -> bool:
        nudge = {"gpu-tiers.dev/nudged": str(time.monotonic_ns())}
        nudged = cluster.api.annotate(f"crd/{name}", nudge, check=False)
        return bool(nudged.code) and "NotFound" in nudged.stderr

    wait_until(gone, GONE_SECONDS, f"customresourcedefinition/{name} to be gone", pause=0.3)
