"""Gives the tests a control plane of their own: it is what they are about, so KUBECONFIG is not looked at."""

import os
from collections.abc import Iterator

import pytest

from localcluster import ControlPlane
from localcluster.for_tests import started
from localcluster.versions import DEFAULT_KUBERNETES


@pytest.fixture(scope="session")
def minor() -> str:
    return os.environ.get("K8S") or DEFAULT_KUBERNETES


@pytest.fixture(scope="module")
def cluster(minor: str, pytestconfig: pytest.Config) -> Iterator[ControlPlane]:
    with started(ControlPlane(minor), pytestconfig) as running:
        yield running
