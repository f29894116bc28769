"""Installs gpu-tiers in Enforce, and what `kubectl apply -f examples/` needs, into a local cluster that is up."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from installation.examples import add_tenants, example_policy
from installation.helm import CHART, RELEASE, helm
from installation.image import project_image, project_image_part
from installation.local_webhook import install_chart, start_webhook
from installation.readiness import wait_for_webhook
from installation.replicas import start_replicas
from installation.workload_crds import add_kinds
from localcluster import ControlPlane, keeper
from localcluster.fake_devices import add_devices
from localcluster.node import NodeCluster
from localcluster.node.packages import have_packages
from localcluster.parts import Part, have

PAGE = "page"
"""The file beside the kubeconfig that says where the page is."""
OPEN = "on this machine alone and without a token"


def prepare(minor: str, *, real: bool) -> None:
    """Make the missing parts, for a real node after its packages; NodeError, BinaryError or GoError if that fails."""
    if real:
        have_packages()
    have(parts(minor, real=real))


def parts(minor: str, *, real: bool) -> Iterator[Part]:
    """Yield the parts of a cluster of that minor version; for a real node also the image of this checkout."""
    yield from keeper.parts(minor, real=real)
    if real:
        yield project_image_part()


def fill(cluster: ControlPlane, replicas: int, devices: int) -> None:
    """Install gpu-tiers and what the examples need, with `devices` GPUs by DRA, and store how to open the page.

    A real node runs the replicas in pods; otherwise they are processes of this machine. Raises what kubectl
    and helm do.
    """
    add_kinds(cluster)
    if devices:
        add_devices(cluster, devices)
    if isinstance(cluster, NodeCluster):
        cluster.import_image(project_image())
        run_in_a_pod(cluster, replicas)
        page = f"kubectl -n {RELEASE} port-forward deploy/{RELEASE} 8090, then open http://localhost:8090"
    else:
        page = way_to_pages(run_as_processes(cluster, replicas))
    (cluster.folder / PAGE).write_text(page)


def way_to_page(kubeconfig: Path) -> str:
    """Return how to open the page of the cluster with this kubeconfig: addresses, or a command."""
    return (kubeconfig.parent / PAGE).read_text()


def way_to_pages(ports: Mapping[str, int]) -> str:
    """Return the addresses of the replicas' pages; which replica leads may change."""
    if len(ports) == 1:
        return "".join(f"http://localhost:{port}, {OPEN}" for port in ports.values())
    each = ", ".join(f"http://localhost:{port} ({replica})" for replica, port in ports.items())
    return f"{each}, {OPEN}; only that of the leader shows the GPUs, and each names the leader"


def run_as_processes(cluster: ControlPlane, replicas: int) -> dict[str, int]:
    """Run the webhook as a process of this machine, or as several behind a balancer.

    A process that dies is started again. Returns the port of each replica's page, by its name.
    """
    address = install_chart(cluster, preset="four-tier", policy=example_policy())
    if replicas > 1:
        started = start_replicas(cluster, address, replicas, restarts=True)
        ports = {each.name: each.address.page_port for each in started}
    else:
        start_webhook(cluster, address, restarts=True)
        ports = {RELEASE: address.page_port}
    wait_for_webhook(cluster)
    add_tenants(cluster)
    return ports


def run_in_a_pod(cluster: NodeCluster, replicas: int = 1) -> None:
    """Install gpu-tiers by helm, as a user does, wait for it, and add the tenants; the node has the image already."""
    values = json.dumps({"mode": "Enforce", "policy": example_policy(), "replicas": replicas})
    release = ["install", RELEASE, str(CHART), f"--namespace={RELEASE}", "--create-namespace"]
    helm(cluster, *release, "--values=-", "--wait", "--timeout=120s", input=values)
    wait_for_webhook(cluster)
    add_tenants(cluster)
