"""A control plane of the Kubernetes version that the other tests do not run on."""

import os
from collections.abc import Iterator

import pytest

from localcluster import ControlPlane
from localcluster.for_tests import started
from localcluster.versions import DEFAULT_KUBERNETES, KUBERNETES
from tests.apiserver.conftest import installed, namespace, node, version

__all__ = ["installed", "namespace", "node", "version"]


@pytest.fixture(scope="package")
def cluster(pytestconfig: pytest.Config) -> Iterator[ControlPlane]:
    """Never the one that GPU_TIERS_TEST_CLUSTER names, which has one version."""
    taken = os.environ.get("K8S") or DEFAULT_KUBERNETES
    other = next(minor for minor in KUBERNETES if minor != taken)
    with started(ControlPlane(other), pytestconfig) as running:
        yield running
