"""The end of the release that all tests here share."""

import pytest

from demonstration.workloads import gpu_pod
from localcluster.node import NodeCluster

from .release import Release

pytestmark = pytest.mark.node


def test_uninstall_leaves_no_webhook_behind(release: Release, node: NodeCluster, namespace: str) -> None:
    release.uninstall()
    left = node.kubectl("get", "mutatingwebhookconfigurations,validatingwebhookconfigurations", "--output=name")
    assert "gpu-tiers" not in left.stdout
    assert not node.kubectl("get", "deployments,services,secrets", "--namespace=gpu-tiers", "--output=name").stdout
    untouched = release.asked(gpu_pod("asked"), namespace).json()
    assert "priorityClassName" not in untouched["spec"]
