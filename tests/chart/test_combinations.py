"""Sets of values as platform teams write them: rendered by Helm 3 and Helm 4, and judged by a real API server."""

from collections.abc import Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import yaml

from installation.workload_crds import WorkloadKind, crd
from localcluster import Cluster
from localcluster.crds import add_crds, delete_crd

from .combinations import COMBINATIONS
from .helm import CHART, Chart, Manifest, helm
from .test_examples_of_values import every_example

pytestmark = pytest.mark.apiserver

NAMESPACE = "combinations"
OTHERS = (
    WorkloadKind("cert-manager.io", "Issuer", "issuers", ("v1",)),
    WorkloadKind("cert-manager.io", "Certificate", "certificates", ("v1",)),
    WorkloadKind("monitoring.coreos.com", "ServiceMonitor", "servicemonitors", ("v1",)),
    WorkloadKind("monitoring.coreos.com", "PrometheusRule", "prometheusrules", ("v1",)),
    WorkloadKind("kueue.x-k8s.io", "WorkloadPriorityClass", "workloadpriorityclasses", ("v1beta2",), "Cluster"),
)
"""What the chart makes for others, if it is told to."""


SOME = (
    *("enforce-with-tenants", "eks-with-another-network-plugin", "openshift", "air-gapped", "cert-manager"),
    *("prometheus-and-grafana", "kueue-flavors-and-placement", "with-objects-of-your-own"),
)
"""The sets that each run tries; a release tries all."""


@pytest.fixture(scope="module")
def rendered(home: Path) -> dict[str, str]:
    return rendered_by(None, home, COMBINATIONS)


def rendered_by(program: str | None, home: Path, names: Collection[str]) -> dict[str, str]:
    """Sets of values by their names, which are the releases' too."""

    def template(name: str) -> str:
        arguments = ("template", name, str(CHART), f"--namespace={NAMESPACE}")
        answer = helm(*arguments, home=home, values=COMBINATIONS[name], program=program)
        assert not answer.code, f"{name}: {answer.stderr}"
        return answer.stdout

    with ThreadPoolExecutor(2) as several:
        return dict(zip(names, several.map(template, names), strict=True))


@pytest.fixture(scope="module")
def prepared(cluster: Cluster) -> Iterator[Cluster]:
    """A namespace that warns of pods which are not restricted, and the kinds of others; of ours the CRD."""
    label = {"pod-security.kubernetes.io/warn": "restricted"}
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE, "labels": label}}
    ours = yaml.safe_load((CHART / "crds" / "tenantquotas.gpu-tiers.dev.yaml").read_text())
    cluster.api.apply(space)
    add_crds(cluster, ours, *map(crd, OTHERS))
    names = [ours["metadata"]["name"], *(f"{each.plural}.{each.group}" for each in OTHERS)]
    yield cluster
    cluster.api.delete(f"namespace/{NAMESPACE}", wait=False)
    for name in names:
        delete_crd(cluster, name)


@pytest.mark.release
def test_there_are_twenty_five_and_no_two_are_the_same(rendered: dict[str, str]) -> None:
    assert len(COMBINATIONS) == 25
    specs = {text.replace(name, "release") for name, text in rendered.items()}
    assert len(specs) == len(rendered)


@pytest.mark.parametrize(
    "names", [SOME, pytest.param(tuple(COMBINATIONS), marks=pytest.mark.release)], ids=["some", "all"]
)
def test_the_api_server_takes_each_of_them_with_no_field_that_it_does_not_know(
    prepared: Cluster, home: Path, names: tuple[str, ...]
) -> None:
    answer = prepared.kubectl(
        *("apply", "--server-side", "--force-conflicts", "--dry-run=server", "--validate=strict", "-f", "-"),
        input="\n---\n".join(rendered_by(None, home, names).values()),
        check=False,
    )
    assert not answer.code, answer.stderr
    said = [line for line in answer.stderr.splitlines() if "would violate" in line]
    assert len(said) == 1, answer.stderr
    assert "hostNetwork=true" in said[0], "all others run in a namespace that enforces restricted"


def test_the_api_server_takes_every_example_of_the_schema(prepared: Cluster, home: Path) -> None:
    arguments = ("template", NAMESPACE, str(CHART), f"--namespace={NAMESPACE}")
    rendered = helm(*arguments, home=home, values=every_example())
    answer = prepared.kubectl(
        *("apply", "--server-side", "--force-conflicts", "--dry-run=server", "--validate=strict", "-f", "-"),
        input=rendered.stdout.replace("namespace: monitoring", f"namespace: {NAMESPACE}"),
        check=False,
    )
    assert not answer.code, answer.stderr


@pytest.mark.release
def test_helm_4_renders_the_same(helm_4: str, home: Path, rendered: dict[str, str]) -> None:
    for name, text in rendered_by(helm_4, home, COMBINATIONS).items():
        assert objects(text) == objects(rendered[name]), name


def objects(text: str) -> list[Manifest]:
    """Return the rendered objects in a stable order, because Helm 4 sorts in another one."""
    found = Chart(each for each in yaml.load_all(text, yaml.CSafeLoader) if each)
    return sorted(found, key=lambda each: (each["kind"], each["metadata"]["name"]))
