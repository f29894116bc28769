"""Runs this checkout's webhook beside a cluster: chart by helm, server on a loopback port. Decides no policy."""

import http.client
import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from localcluster.cluster import Cluster
from localcluster.ports import free_ports
from localcluster.processes import Process, ProcessError
from localcluster.waiting import wait_until

ROOT = Path(__file__).parents[1]
RELEASE = "gpu-tiers"
READY_SECONDS = 60
PROBE = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "probe", "namespace": "default"},
    "spec": {"containers": [{"name": "probe", "image": "probe", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]},
}


@dataclass(frozen=True)
class Address:
    """The webhook's two loopback ports."""

    port: int
    metrics_port: int

    @property
    def url(self) -> str:
        """Where the API server finds it."""
        return f"https://127.0.0.1:{self.port}"


def install_chart(cluster: Cluster, **values: object) -> Address:
    """Install or upgrade the chart for a webhook at the address returned; ProcessError if helm fails.

    Values are the chart's own, such as preset="three-tier"; the mode is Enforce unless they name another.
    """
    address = Address(*free_ports(2))
    chosen = {"mode": "Enforce", "webhook": {"url": address.url}, **values}
    command = ["upgrade", "--install", RELEASE, str(ROOT / "charts" / "gpu-tiers"), f"--namespace={RELEASE}"]
    helm(cluster, *command, "--create-namespace", "--values=-", input=json.dumps(chosen))
    return address


def helm(cluster: Cluster, *arguments: str, input: str | None = None) -> None:  # noqa: A002
    """Run helm against the cluster, with its own files in the cluster's folder; ProcessError says what it said."""
    homes = {f"HELM_{kind}_HOME": str(cluster.folder / "helm" / kind.lower()) for kind in ("CACHE", "CONFIG", "DATA")}
    run = subprocess.run(
        [program("helm"), f"--kubeconfig={cluster.kubeconfig}", *arguments],
        env={**os.environ, **homes},
        input=input,
        capture_output=True,
        text=True,
        check=False,
    )
    if run.returncode:
        raise ProcessError(f"helm {arguments[0]} (exit {run.returncode}): {run.stderr.strip()}")


def start_webhook(cluster: Cluster, address: Address) -> Process:
    """Start `gpu-tiers serve` with the policy that the chart installed, and wait for its /readyz."""
    policy = cluster.folder / "policy.yaml"
    policy.write_text(installed_policy(cluster))
    command = [
        program("gpu-tiers"),
        "serve",
        "--host=127.0.0.1",
        f"--port={address.port}",
        f"--metrics-port={address.metrics_port}",
        "--dns-name=127.0.0.1",
        f"--kubeconfig={cluster.kubeconfig}",
        f"--policy={policy}",
        f"--cert-dir={cluster.folder / 'webhook-tls'}",
        "--log-format=console",
    ]
    process = cluster.processes.start("gpu-tiers", command)

    def is_ready() -> bool:
        process.check()
        return answers_ready(address.metrics_port)

    try:
        wait_until(is_ready, READY_SECONDS, "gpu-tiers serve", pause=0.3)
    except TimeoutError:
        raise process.failure(f"was not ready within {READY_SECONDS} s") from None
    return process


def installed_policy(cluster: Cluster) -> str:
    """Return the policy file's text from the release's ConfigMap."""
    found = cluster.kubectl("get", "configmap", RELEASE, f"--namespace={RELEASE}", "--output=json").json()
    return str(found["data"]["policy.yaml"])


def wait_for_webhook(cluster: Cluster) -> None:
    """Wait until the API server asks it: a new configuration and its caBundle take a moment to arrive there."""

    def gives_a_tier() -> bool:
        create = ("create", "--dry-run=server", "--output=json", "-f", "-")
        answer = cluster.kubectl(*create, input=json.dumps(PROBE), check=False)
        return not answer.code and "gpu-tiers.dev/tier" in answer.json()["metadata"].get("labels", {})

    wait_until(gives_a_tier, READY_SECONDS, "a GPU pod's tier", pause=0.5)


def answers_ready(port: int) -> bool:
    """Whether /readyz on that loopback port says 200."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", "/readyz")
        return connection.getresponse().status == http.HTTPStatus.OK
    except OSError:
        return False
    finally:
        connection.close()


def program(name: str) -> str:
    """Return a program of this Python's environment, else the one on PATH; ProcessError if there is none."""
    beside = Path(sys.executable).parent / name
    found = str(beside) if beside.exists() else shutil.which(name)
    if not found:
        raise ProcessError(f"{name} is not installed: pip install -e '.[dev]'")
    return found
