"""Runs this checkout's webhook beside a cluster: the chart by helm, the server on loopback ports."""

import json
import secrets
from dataclasses import dataclass, field
from pathlib import Path

from installation.helm import CHART, RELEASE, helm, program
from installation.readiness import READY_SECONDS
from localcluster import Cluster
from localcluster.ports import free_ports
from localcluster.processes import Process
from localcluster.waiting import answers_ready, wait_until


@dataclass(frozen=True)
class Address:
    """The webhook's loopback ports, the secret with which its paths begin, and its user at the API server."""

    port: int
    metrics_port: int
    page_port: int
    secret: str = field(default="", kw_only=True)
    user: str = field(default="", kw_only=True)

    @property
    def values(self) -> dict[str, str]:
        """The chart's values for this address."""
        return {"url": self.url, "user": self.user}

    @property
    def url(self) -> str:
        """The URL by which the API server finds the webhook."""
        return f"https://127.0.0.1:{self.port}/{self.secret}"


def install_chart(cluster: Cluster, **values: object) -> Address:
    """Install or upgrade the chart for a webhook at the address returned; ProcessError if helm fails.

    Values are the chart's own, such as preset="three-tier"; the mode is Enforce unless they name another.
    """
    whoami = cluster.kubectl("auth", "whoami", "--output=jsonpath={.status.userInfo.username}")
    address = Address(*free_ports(3), secret=secrets.token_hex(16), user=whoami.stdout)
    chosen = {"mode": "Enforce", "webhook": address.values, **values}
    command = ["upgrade", "--install", RELEASE, str(CHART), f"--namespace={RELEASE}", "--create-namespace"]
    helm(cluster, *command, "--values=-", input=json.dumps(chosen))
    return address


def start_webhook(cluster: Cluster, address: Address, *options: str, restarts: bool = False) -> Process:
    """Start `gpu-tiers serve` with the policy that the chart installed and `options`; wait for its /readyz."""
    process = cluster.processes.start("gpu-tiers", serve(cluster, address, *options), restarts=restarts)
    wait_until_ready(process, address)
    return process


def wait_until_ready(process: Process, address: Address) -> None:
    """Wait for the /readyz of the webhook; ProcessError if the process ends, or takes longer than READY_SECONDS."""

    def is_ready() -> bool:
        process.check()
        return answers_ready(address.metrics_port)

    try:
        wait_until(is_ready, READY_SECONDS, process.name)
    except TimeoutError:
        raise process.failure(f"was not ready within {READY_SECONDS} s") from None


def serve(cluster: Cluster, address: Address, *options: str) -> list[str]:
    """Write the policy file, and return the command line that serves by it, with more options of `serve`."""
    policy_file(cluster).write_text(installed_policy(cluster))
    return [
        program("gpu-tiers"),
        "serve",
        "--host=127.0.0.1",
        f"--port={address.port}",
        f"--metrics-port={address.metrics_port}",
        f"--page-port={address.page_port}",
        "--dns-name=127.0.0.1",
        f"--kubeconfig={cluster.kubeconfig}",
        f"--policy={policy_file(cluster)}",
        f"--cert-dir={cluster.folder / 'webhook-tls'}",
        "--log-format=console",
        *options,
    ]


def policy_file(cluster: Cluster) -> Path:
    """Return the path of the policy file of a webhook that runs beside the cluster."""
    return cluster.folder / "policy.yaml"


def installed_policy(cluster: Cluster) -> str:
    """Return the policy file's text from the release's ConfigMap."""
    found = cluster.kubectl("get", "configmap", RELEASE, f"--namespace={RELEASE}", "--output=json").json()
    return str(found["data"]["policy.yaml"])
