"""Kueue's classes of the tiers, installed beside those that are there, in a cluster with Kueue's CRD or without it."""

from collections.abc import Iterator

import pytest

from installation.workload_crds import WorkloadKind, crd
from localcluster import Cluster
from localcluster.crds import add_crds, delete_crd

from .helm import Manifest
from .release import CONFIGURATION, NAME, Release

pytestmark = pytest.mark.apiserver

KIND = WorkloadKind("kueue.x-k8s.io", "WorkloadPriorityClass", "workloadpriorityclasses", ("v1beta2",), "Cluster")
POLICY = {"policy": {"kueue": {"workloadPriorityClasses": True, "manageJobsWithoutQueueName": True}}}


def queue_class(name: str, value: int) -> Manifest:
    return {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": KIND.kind, "metadata": {"name": name}, "value": value}


@pytest.fixture
def kueue(cluster: Cluster) -> Iterator[None]:
    """The CRD of a Kueue that serves v1beta2 alone, as from 0.20 on."""
    add_crds(cluster, crd(KIND))
    yield
    delete_crd(cluster, f"{KIND.plural}.{KIND.group}")


def values_of(release: Release) -> dict[str, int]:
    return {each["metadata"]["name"]: each["value"] for each in release.get(KIND.plural)["items"]}


@pytest.mark.usefixtures("kueue")
def test_they_outlive_the_release_and_others_stay_their_owners(release: Release) -> None:
    release.cluster.api.apply(queue_class("gpu-batch", 400))
    release.install(**POLICY)
    tiers = {"gpu-training": 1000, "gpu-serving": 800, "gpu-batch": 400, "gpu-interactive": 200}
    assert values_of(release) == tiers
    assert "labels" not in release.get(KIND.plural, "gpu-batch")["metadata"]
    release.upgrade(**POLICY)
    release.upgrade()
    assert values_of(release) == tiers, "jobs still name them"


@pytest.mark.usefixtures("kueue")
def test_one_of_another_value_is_refused_before_anything_is_applied(release: Release) -> None:
    release.cluster.api.apply(queue_class("gpu-batch", 500))
    refusal = release.try_install(NAME, **POLICY).stderr
    assert "WorkloadPriorityClass gpu-batch exists with value 500, and the policy says 400" in refusal
    assert "kubectl delete workloadpriorityclass gpu-batch" in refusal
    assert CONFIGURATION not in release.names("validatingwebhookconfiguration")


def test_without_kueue_helm_says_what_is_missing(release: Release) -> None:
    refusal = release.try_install(NAME, **POLICY).stderr
    assert 'no matches for kind "WorkloadPriorityClass"' in refusal
    assert "ensure CRDs are installed first" in refusal
