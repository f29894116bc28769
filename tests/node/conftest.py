"""Gives the tests one real node and one release of the chart on it, and each test a namespace of its own."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from demonstration.preemption import GPUS
from demonstration.workloads import new_namespace
from installation.image import project_image
from localcluster.binaries import BinaryError
from localcluster.for_tests import missing, started
from localcluster.go_toolchain import GoError
from localcluster.node import NodeCluster, NodeError
from localcluster.node.images import python_image
from localcluster.node.packages import have_packages
from localcluster.versions import DEFAULT_KUBERNETES

from .release import Release

UNINSTALLS = "test_uninstall"
"""The module that leaves no release for others."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run first what needs a cluster that never saw the chart, and last what uninstalls it."""
    items.sort(key=turn)


def turn(item: pytest.Item) -> int:
    """Return the rank of a test of this folder; others stay where they are."""
    here = Path(__file__).parent in item.path.parents
    needs_the_release = "release" in getattr(item, "fixturenames", ())
    return here * (1 + needs_the_release + (item.path.stem == UNINSTALLS))


@pytest.fixture(scope="session")
def machine() -> None:
    """Return this machine with the packages of a real node; where it can't run one, the line that says why."""
    try:
        have_packages()
    except NodeError as error:
        missing(str(error))


@pytest.fixture(scope="package")
def node(machine: None, pytestconfig: pytest.Config) -> Iterator[NodeCluster]:  # noqa: ARG001 - needed, not used
    """A control plane with one real node of 4 GPUs, which knows the project's image and one with Python."""
    try:
        images = [python_image(), project_image()]
    except (NodeError, BinaryError, GoError) as error:
        missing(f"no images for a real node: {error}")
    with started(NodeCluster(os.environ.get("K8S") or DEFAULT_KUBERNETES, gpus=GPUS), pytestconfig) as running:
        for image in images:
            running.import_image(image)
        yield running


@pytest.fixture(scope="package")
def release(node: NodeCluster) -> Iterator[Release]:
    """The chart, installed as a user installs it, in Enforce; the webhook runs in a pod. All tests share it."""
    installed = Release(node)
    yield installed
    installed.uninstall()


@pytest.fixture
def namespace(node: NodeCluster) -> Iterator[str]:
    """A new namespace that takes pods; what runs in it is gone before the next test."""
    with new_namespace(node, "test") as name:
        yield name


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A folder on this machine that outlives the pods."""
    folder = tmp_path / "data"
    folder.mkdir()
    return folder
