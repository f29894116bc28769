"""Renders the chart for the tests, and gives those that need one a cluster into which it can be installed."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml

from localcluster import Cluster, ControlPlane
from localcluster.binaries import BinaryError, find, release_binaries
from localcluster.for_tests import missing, started
from localcluster.go_toolchain import GoError
from localcluster.versions import DEFAULT_KUBERNETES
from localcluster.waiting import wait_until

from .asking import wait_until_gpu_pods_are
from .helm import CHART, Answer, Chart, Manifest, helm
from .release import Release

Render = Callable[..., Chart]
Refuse = Callable[..., str]


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Helm's own folders."""
    return tmp_path_factory.mktemp("helm")


@pytest.fixture(scope="session")
def template(home: Path) -> Callable[[Manifest], Answer]:
    """`helm template gpu-tiers --namespace gpu-tiers` with values."""

    def run(values: Manifest) -> Answer:
        return helm("template", "gpu-tiers", str(CHART), "--namespace=gpu-tiers", home=home, values=values)

    return run


@pytest.fixture(scope="session")
def render(template: Callable[[Manifest], Answer]) -> Render:
    """The objects that the chart renders with these values."""

    def run(**values: object) -> Chart:
        answer = template(values)
        assert not answer.code, answer.stderr
        return Chart(each for each in yaml.load_all(answer.stdout, yaml.CSafeLoader) if each)

    return run


@pytest.fixture(scope="session")
def refuse(template: Callable[[Manifest], Answer]) -> Refuse:
    """Return helm's error for these values."""

    def run(**values: object) -> str:
        answer = template(values)
        assert answer.code, "helm accepted these values"
        return answer.stderr

    return run


@pytest.fixture(scope="package")
def cluster(pytestconfig: pytest.Config) -> Iterator[Cluster]:
    """A control plane of its own in any case: these tests delete PriorityClasses and the CRD.

    Their pods run nowhere.
    """
    minor = os.environ.get("K8S") or DEFAULT_KUBERNETES
    with started(ControlPlane(minor, scheduler=False, kwok=False), pytestconfig) as running:
        yield running


@pytest.fixture(scope="session")
def helm_4() -> str:
    """The other helm that people have."""
    try:
        return str(find(release_binaries()["helm"]))
    except (BinaryError, GoError) as error:
        missing(f"no Helm 4: {error}")


@contextmanager
def wiped(release: Release) -> Iterator[Release]:
    """Remove the release without a trace."""
    try:
        yield release
    finally:
        release.wipe()


@pytest.fixture
def release(cluster: Cluster, home: Path) -> Iterator[Release]:
    """The release gpu-tiers in namespace gpu-tiers, not installed yet, for one test."""
    with wiped(Release(cluster, home)) as release:
        yield release


@pytest.fixture(scope="module")
def enforced(cluster: Cluster, home: Path) -> Iterator[Release]:
    """The chart in Enforce, with a webhook that is dead, for all tests of a module."""
    with wiped(Release(cluster, home)) as release:
        release.install(mode="Enforce")
        wait_until_gpu_pods_are(cluster, refused=True)
        yield release


@pytest.fixture(scope="package")
def namespace(cluster: Cluster) -> Iterator[str]:
    """A namespace that the webhook is asked about. Tests leave it empty: a namespace takes seconds to go."""
    name = "research"
    cluster.api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    wait_until(lambda: cluster.api.has("serviceaccount/default", name), 240, "its ServiceAccount")
    yield name
    cluster.api.delete(f"namespace/{name}", wait=False)
