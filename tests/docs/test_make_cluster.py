"""What `make cluster` leaves running serves the kinds of the examples."""

from urllib.request import urlopen

import pytest

from installation.fill import way_to_page
from installation.workload_crds import WORKLOAD_KINDS
from localcluster import Cluster

pytestmark = pytest.mark.apiserver

MPI_JOB = """
apiVersion: kubeflow.org/v2beta1
kind: MPIJob
metadata: {name: two-versions, namespace: default}
spec: {slotsPerWorker: 8, mpiReplicaSpecs: {Worker: {replicas: 2}}}
"""


def test_the_kinds_of_the_examples_are_served(made_cluster: Cluster) -> None:
    crds = made_cluster.kubectl("get", "crd", "-o", "name").stdout.split()
    expected = {f"{row.plural}.{row.group}" for row in WORKLOAD_KINDS}
    assert {name.partition("/")[2] for name in crds} == expected | {"tenantquotas.gpu-tiers.dev"}


def test_the_page_is_where_the_command_says(made_cluster: Cluster) -> None:
    address = way_to_page(made_cluster.kubeconfig).partition(",")[0]
    with urlopen(address) as page:  # noqa: S310 - http, as the line before says
        assert "<title>" in page.read().decode()


def test_an_object_of_one_version_is_read_in_another(made_cluster: Cluster) -> None:
    made_cluster.apply(MPI_JOB)
    made_cluster.kubectl("get", "mpijobs.v1.kubeflow.org", "two-versions")
