"""A cluster of `make cluster` serves the kinds of the examples."""

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.request import urlopen

import pytest

from installation.examples import add_tenants
from installation.fill import way_to_page, way_to_pages
from installation.helm import CHART, RELEASE, helm
from installation.workload_crds import WORKLOAD_KINDS
from localcluster import Cluster, Result
from localcluster.waiting import wait_until

from .markdown import ROOT, page
from .shell import lines, linked_project, run_as_printed

pytestmark = pytest.mark.apiserver

MPI_JOB = """
apiVersion: kubeflow.org/v2beta1
kind: MPIJob
metadata: {name: two-versions, namespace: default}
spec: {slotsPerWorker: 8, mpiReplicaSpecs: {Worker: {replicas: 2}}}
"""

UNKNOWN_TIER = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "unknown-tier", "labels": {"gpu-tiers.dev/tier": "no-such-tier"}},
    "spec": {"containers": [{"name": "train", "image": "pytorch", "resources": {"limits": {"nvidia.com/gpu": 1}}}]},
}


def try_unknown_tier(cluster: Cluster) -> Result:
    """Ask by a dry run, without a process of kubectl for each of many attempts."""
    return cluster.api.create(UNKNOWN_TIER, "default", dry_run=True, check=False)


def test_the_kinds_of_the_examples_are_served(made_cluster: Cluster) -> None:
    crds = made_cluster.kubectl("get", "crd", "-o", "name").stdout.split()
    expected = {f"{row.plural}.{row.group}" for row in WORKLOAD_KINDS}
    assert {name.partition("/")[2] for name in crds} == expected | {"tenantquotas.gpu-tiers.dev"}


def test_the_page_is_where_the_command_says(made_cluster: Cluster) -> None:
    address = way_to_page(made_cluster.kubeconfig).partition(",")[0]
    with urlopen(address) as page:  # noqa: S310 - http, as the line before says
        assert "<title>" in page.read().decode()


def test_of_several_replicas_each_page_is_named_for_any_may_lead() -> None:
    page_text = way_to_pages({"gpu-tiers-0": 4001, "gpu-tiers-1": 4002})
    assert page_text.startswith(
        "http://localhost:4001 (gpu-tiers-0), http://localhost:4002 (gpu-tiers-1), on this machine"
    )
    assert page_text.endswith("each names the leader")


def test_an_object_of_one_version_is_read_in_another(made_cluster: Cluster) -> None:
    made_cluster.apply(MPI_JOB)
    made_cluster.kubectl("get", "mpijobs.v1.kubeflow.org", "two-versions")


def test_a_webhook_that_is_killed_is_started_again(made_cluster: Cluster) -> None:
    command = ["pgrep", "-f", f"gpu-tiers serve .*{made_cluster.kubeconfig}"]
    (killed,) = map(int, subprocess.run(command, capture_output=True, text=True, check=True).stdout.split())
    os.kill(killed, signal.SIGKILL)

    def answers() -> bool:
        return "no-such-tier" in try_unknown_tier(made_cluster).stderr

    wait_until(answers, 60, "the webhook that is started again")
    made_cluster.kubectl("get", "nodes")


def test_the_webhook_follows_the_policy_that_helm_writes(made_cluster: Cluster) -> None:
    def upgrade(mode: str) -> None:
        options = (f"--namespace={RELEASE}", "--reset-then-reuse-values", f"--set=mode={mode}")
        helm(made_cluster, "upgrade", RELEASE, str(CHART), *options)

    def refuses() -> bool:
        return bool(try_unknown_tier(made_cluster).code)

    assert refuses()
    upgrade("Audit")
    try:
        wait_until(lambda: not refuses(), 240, "the mode Audit")
    finally:
        upgrade("Enforce")
    wait_until(refuses, 240, "the mode Enforce")


INTERNS = """
apiVersion: v1
kind: Namespace
metadata: {name: interns}
---
apiVersion: gpu-tiers.dev/v1alpha1
kind: TenantQuota
metadata: {name: interns}
spec:
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: interns}}
  allowedTiers: [spare]
"""
NOTEBOOK = """
apiVersion: v1
kind: Pod
metadata: {name: notebook, namespace: interns}
spec: {containers: [{name: lab, image: jupyter, resources: {limits: {nvidia.com/gpu: 1}}}]}
"""


@pytest.fixture
def examples_again(made_cluster: Cluster) -> Iterator[None]:
    """Brings back the policy and the tenants of the examples, which other tests need."""
    values = helm(made_cluster, "get", "values", RELEASE, f"--namespace={RELEASE}", "--output=json")
    yield
    made_cluster.kubectl("delete", "tenantquota/interns", "namespace/interns")
    options = (f"--namespace={RELEASE}", "--reset-values", "--values=-")
    helm(made_cluster, "upgrade", RELEASE, str(CHART), *options, input=values)
    add_tenants(made_cluster)


@pytest.mark.usefixtures("examples_again")
def test_a_policy_of_ones_own_goes_in_as_the_page_says(made_cluster: Cluster, tmp_path: Path) -> None:
    page_text = page("docs/install-local.md")
    (values,) = (each.text for each in page_text.blocks("yaml") if "Your own policy" in each.headings[-1])
    (block,) = (each for each in page_text.blocks("sh") if "Your own policy" in each.headings[-1])
    folder = linked_project(tmp_path)
    (folder / ".venv").symlink_to(ROOT / ".venv")
    (folder / "values.yaml").write_text(values)
    (folder / "tenants").mkdir()
    (folder / "tenants" / "interns.yaml").write_text(INTERNS)

    printed = run_as_printed(lines(block), made_cluster, folder=folder)
    assert "Warning" not in printed["kubectl apply -f tenants/"], "the webhook knows the tiers by then"
    dry_run = ("create", "--dry-run=server", "--output=json", "-f", "-")
    notebook = made_cluster.kubectl(*dry_run, input=NOTEBOOK).json()
    assert notebook["spec"]["priorityClassName"] == "spare"
