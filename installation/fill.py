"""Installs gpu-tiers in Enforce, and what `kubectl apply -f examples/` needs, into a local cluster that is up."""

import json

from installation.beside import install_chart, start_webhook
from installation.examples import add_kinds, add_tenants, example_policy
from installation.helm import CHART, RELEASE, helm
from installation.image import project_image
from installation.readiness import wait_for_webhook
from installation.replicas import start_replicas
from localcluster import ControlPlane, keeper
from localcluster.node import NodeCluster


def prepare(minor: str, *, real: bool) -> None:
    """Have all that takes minutes the first time; NodeError or BinaryError where it can't be had."""
    keeper.prepare(minor, real=real)
    if real:
        project_image()


def fill(cluster: ControlPlane, replicas: int) -> None:
    """Make the cluster what the examples need; an error of kubectl, helm or a process goes up."""
    add_kinds(cluster)
    if isinstance(cluster, NodeCluster):
        cluster.import_image(project_image())
        run_in_a_pod(cluster, replicas)
    else:
        run_beside(cluster, replicas)


def run_beside(cluster: ControlPlane, replicas: int) -> None:
    """Where no container runs: the webhook is a process of this machine, or several behind a balancer."""
    address = install_chart(cluster, preset="four-tier", policy=example_policy())
    if replicas > 1:
        start_replicas(cluster, address, replicas)
    else:
        start_webhook(cluster, address)
    wait_for_webhook(cluster)
    add_tenants(cluster)


def run_in_a_pod(cluster: NodeCluster, replicas: int = 1) -> None:
    """As a user installs it; the node knows the image already."""
    values = json.dumps({"mode": "Enforce", "policy": example_policy(), "replicas": replicas})
    release = ["install", RELEASE, str(CHART), f"--namespace={RELEASE}", "--create-namespace"]
    helm(cluster, *release, "--values=-", "--wait", "--timeout=120s", input=values)
    wait_for_webhook(cluster)
    add_tenants(cluster)
