"""Tells from a real API server whether it asked a webhook that is dead."""

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from localcluster import Cluster, Result

from .helm import Manifest

GPU = {"resources": {"limits": {"nvidia.com/gpu": "1"}}}


def pod(*, labels: Manifest | None = None, main: Manifest | None = None, **spec: object) -> Manifest:
    container = {"name": "main", "image": "example.com/none"} | (main or {})
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"generateName": "try-", "labels": labels or {}},
        "spec": {"containers": [container], **spec},
    }


GPU_POD = pod(main=GPU)


def try_create(cluster: Cluster, namespace: str, manifest: Manifest, **asked: str) -> Result:
    """A dry run: the API server asks the same webhooks, and nothing stays."""
    return cluster.api.create(manifest, namespace, dry_run=True, check=False, **asked)


def wait_until_gpu_pods_are(cluster: Cluster, *, refused: bool, manifest: Manifest = GPU_POD) -> None:
    """A changed configuration takes a moment to reach the API server that serves it."""
    deadline = time.monotonic() + 240
    while bool(try_create(cluster, "default", manifest).code) != refused:
        assert time.monotonic() < deadline, f"GPU pods are still {'admitted' if refused else 'refused'}"
        time.sleep(0.1)


@contextmanager
def forgiven(cluster: Cluster, entry: str) -> Iterator[Callable[[], int]]:
    """Yield how many calls of this entry failed and were ignored since the block began."""
    before = _forgiven(cluster, entry)
    yield lambda: _forgiven(cluster, entry) - before


def condition_errors(cluster: Cluster) -> int:
    """Return how often a matchCondition could not be evaluated since the API server started."""
    return _sum(cluster, r"apiserver_admission_match_condition_evaluation_errors_total\{.*\} (\d+)")


def _forgiven(cluster: Cluster, entry: str) -> int:
    return _sum(cluster, rf'apiserver_admission_webhook_fail_open_count\{{name="{re.escape(entry)}".*\}} (\d+)')


def _sum(cluster: Cluster, pattern: str) -> int:
    return sum(int(count) for count in re.findall(pattern, cluster.api.text("/metrics")))
