"""Questions to gpu-tiers on a real node: a command of the CLI, a metric, the page by `kubectl port-forward`."""

import http.client
import re
from collections.abc import Iterator
from html import unescape

from typer.testing import CliRunner

from localcluster.binaries import binaries, find
from localcluster.node import NodeCluster
from localcluster.ports import free_ports
from localcluster.waiting import wait_until
from webhook.cli.main import app

from .together import SECONDS

METRICS_PORT, PAGE_PORT = 8080, 8090


def answer(node: NodeCluster, namespace: str, *question: str) -> str:
    """Return the output of a command that succeeds, on one line."""
    asked = CliRunner().invoke(app, [*question, f"--namespace={namespace}", f"--kubeconfig={node.kubeconfig}"])
    assert asked.exit_code == 0, asked.output
    return " ".join(asked.stdout.split())


def metric(node: NodeCluster, name: str, **labels: str) -> float:
    """The sum of a metric's samples of all replicas that bear these labels."""
    wanted = [f'{label}="{value}"' for label, value in labels.items()]
    found = (
        line
        for pod in _replicas(node)
        for line in node.api.text(f"/api/v1/namespaces/gpu-tiers/{pod}:{METRICS_PORT}/proxy/metrics").splitlines()
        if line.split("{")[0].split(" ")[0] == name
    )
    return sum(float(line.rpartition(" ")[2]) for line in found if all(each in line for each in wanted))


def pages(node: NodeCluster) -> list[str]:
    """The words of each replica's page: verdicts are those of one, preemptions those of whichever leads."""
    return [page for pod in _replicas(node) for page in _forwarded(node, pod)]


def _replicas(node: NodeCluster) -> list[str]:
    found = node.api.get("pods", "gpu-tiers", labelSelector="app.kubernetes.io/name=gpu-tiers")["items"]
    return [f"pods/{each['metadata']['name']}" for each in found]


def _forwarded(node: NodeCluster, pod: str) -> Iterator[str]:
    (port,) = free_ports(1)
    kubectl = str(find(binaries(node.kubernetes.minor)["kubectl"]))
    where = [f"--kubeconfig={node.kubeconfig}", "--namespace=gpu-tiers"]
    forward = node.processes.start(f"forward-{port}", [kubectl, *where, "port-forward", pod, f"{port}:{PAGE_PORT}"])
    try:
        wait_until(lambda: "Forwarding from" in forward.log.read_text(), SECONDS, f"a way to {pod}")
        yield _page(port)
    finally:
        node.processes.end(forward)


def _page(port: int) -> str:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request("GET", "/")
        text = re.sub(r"<[^>]+>", " ", connection.getresponse().read().decode())
        return " ".join(unescape(text).split())
    finally:
        connection.close()
