"""Starts the cluster of a test, or says why there is none."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn, TypeVar

import pytest

from localcluster.binaries import BinaryError
from localcluster.cluster import Cluster
from localcluster.go_toolchain import GoError
from localcluster.node.packages import NodeError

AnyCluster = TypeVar("AnyCluster", bound=Cluster)


@contextmanager
def started(cluster: AnyCluster, config: pytest.Config) -> Iterator[AnyCluster]:
    """Run a cluster for the tests, and print its version past pytest's capture.

    If its parts can't be made, the tests are skipped with the reason; under CI=true they fail.
    """
    try:
        cluster.__enter__()
    except (BinaryError, GoError, NodeError) as error:
        missing(f"no cluster: {error}")
    try:
        announce(config, f"kube-apiserver {cluster.version} ({cluster.kubeconfig})")
        yield cluster
    finally:
        cluster.__exit__(None, None, None)


def missing(reason: str) -> NoReturn:
    """Skip the test, or fail it under CI=true, because a pipeline without the parts is broken."""
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


def announce(config: pytest.Config, line: str) -> None:
    """Print a line to the terminal while the tests run; a worker of pytest-xdist stores it for its own end."""
    if hasattr(config, "workeroutput"):
        config.workeroutput.setdefault("announced", []).append(line)
        return
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    capture = config.pluginmanager.get_plugin("capturemanager")
    if reporter and capture:
        with capture.global_and_fixture_disabled():
            reporter.ensure_newline()
            reporter.write_line(line)
