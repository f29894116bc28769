"""Says of which Kubernetes version the control planes are that these tests start and end."""

import os

import pytest

from localcluster.versions import DEFAULT_KUBERNETES


@pytest.fixture(scope="session")
def minor() -> str:
    return os.environ.get("K8S") or DEFAULT_KUBERNETES
