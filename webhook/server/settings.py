"""The command-line options of `gpu-tiers serve`, with their help."""

import json
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from socket import gethostname
from typing import Annotated
from urllib.parse import urlsplit

import msgspec
import typer

from webhook.server.logs import Format, Level


class Certificates(StrEnum):
    """The source of the serving certificate."""

    FILES = "files"
    SELF_MANAGED = "self-managed"


class PrometheusServer(msgspec.Struct, frozen=True):
    """A Prometheus. `labels` select the metrics of this cluster; the files are read at each query."""

    url: str
    labels: Mapping[str, str]
    token_file: Path | None
    ca_file: Path | None

    @property
    def name(self) -> str:
        """Host and port, without a password in the URL."""
        return urlsplit(self.url).netloc.rpartition("@")[2]

    @property
    def matchers(self) -> str:
        """The labels in PromQL, which has the same strings as JSON."""
        pairs = ",".join(f"{label}={json.dumps(value)}" for label, value in self.labels.items())
        return f"{{{pairs}}}" if pairs else ""


class Settings(msgspec.Struct, frozen=True):
    """The settings of one process, each with its option. A port that is None is not opened.

    Raises typer.BadParameter if the options of Prometheus are wrong.
    """

    policy: Annotated[Path, typer.Option(help="Policy file; read again when it changes.")] = Path(
        "/etc/gpu-tiers/policy.yaml"
    )
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "0.0.0.0"
    port: Annotated[int, typer.Option(min=1, max=65535, help="HTTPS port of reviews.")] = 9443
    metrics_port: Annotated[int, typer.Option(min=1, max=65535, help="HTTP port of probes and metrics.")] = 8080
    page_port: Annotated[
        int | None,
        typer.Option(min=1, max=65535, help="Port of the page on loopback, for kubectl port-forward only."),
    ] = None
    page_tls_port: Annotated[
        int | None,
        typer.Option(min=1, max=65535, help="HTTPS port of the page for readers with a token and the right to it."),
    ] = None
    page_audiences: Annotated[
        list[str] | None,
        typer.Option("--page-audience", help="Audience of those tokens (repeatable). Without one, the API server's."),
    ] = None
    reports_port: Annotated[
        int | None,
        typer.Option(min=1, max=65535, help="HTTPS port on which trainings report their progress."),
    ] = None
    reports_service: Annotated[
        str, typer.Option(help="Headless Service of that port; the certificate has its names.")
    ] = "gpu-tiers-reports"
    hand_over_port: Annotated[
        int | None,
        typer.Option(min=1, max=65535, help="HTTPS port on which the leader takes bookings from other replicas."),
    ] = None
    pod_ip: Annotated[
        str, typer.Option(envvar="POD_IP", help="Address of --hand-over-port.", show_default="--host")
    ] = ""
    prometheus_url: Annotated[
        str | None,
        typer.Option(help="http(s)://… of a Prometheus that scrapes gpu-tiers, for the page's last 24 hours."),
    ] = None
    prometheus_labels: Annotated[
        list[str] | None,
        typer.Option(
            "--prometheus-label",
            help="LABEL=VALUE that selects the metrics of this cluster (repeatable).",
        ),
    ] = None
    prometheus_token_file: Annotated[
        Path | None, typer.Option(help="File with the bearer token for Prometheus; only over https.")
    ] = None
    prometheus_ca_file: Annotated[
        Path | None, typer.Option(help="PEM file of its CA. Without it, the system's CAs.")
    ] = None
    client_ca: Annotated[
        Path | None,
        typer.Option(help="PEM file of a CA. Only clients with a certificate from it may ask for reviews."),
    ] = None
    client_names: Annotated[
        list[str] | None,
        typer.Option("--client-name", help="Name that their certificate must have, in subject or SAN (repeatable)."),
    ] = None
    certificates: Annotated[Certificates, typer.Option(help="Where the certificate comes from.")] = (
        Certificates.SELF_MANAGED
    )
    cert_dir: Annotated[Path, typer.Option(help="With files: folder of tls.crt, tls.key and ca.crt.")] = Path(
        "/var/run/gpu-tiers/tls"
    )
    namespace: Annotated[
        str, typer.Option(envvar="POD_NAMESPACE", help="Namespace of the Service and of the Secret.")
    ] = "gpu-tiers"
    service: Annotated[str, typer.Option(help="Service that the API server calls; the certificate has its names.")] = (
        "gpu-tiers"
    )
    secret: Annotated[str, typer.Option(help="With self-managed: Secret for the CA and the certificate.")] = (
        "gpu-tiers-tls"  # noqa: S105
    )
    configuration: Annotated[
        str, typer.Option(help="Name of both webhook configurations. Reviews are answered at the paths that they name.")
    ] = "zz-gpu-tiers"
    ceilings: Annotated[
        str, typer.Option(help="ConfigMap, in the namespace, from which the API server reads tenants' ceilings.")
    ] = "gpu-tiers-ceilings"
    config_map: Annotated[
        str,
        typer.Option(help="ConfigMap, in the namespace, with the policy; NAME-active has the active policy."),
    ] = "gpu-tiers"
    exempt_namespaces: Annotated[
        list[str] | None,
        typer.Option(
            "--exempt-namespace", help="Namespace whose pods are never evicted for devices of DRA (repeatable)."
        ),
    ] = None
    dns_names: Annotated[
        list[str] | None,
        typer.Option("--dns-name", help="With self-managed: another name or address of the certificate (repeatable)."),
    ] = None
    kubeconfig: Annotated[
        Path | None,
        typer.Option(help="Kubeconfig; without it the pod's ServiceAccount, else $KUBECONFIG or ~/.kube/config."),
    ] = None
    identity: Annotated[
        str, typer.Option(envvar="POD_NAME", help="Name of this process in the Lease.", show_default="the host")
    ] = ""
    lease: Annotated[str, typer.Option(help="Lease of the leader, in the namespace.")] = "gpu-tiers"
    lease_seconds: Annotated[
        int, typer.Option(min=3, max=3600, help="How long the Lease is valid after it was renewed last.")
    ] = 15
    create_timeout: Annotated[
        float,
        typer.Option(
            min=1, max=3600, help="Seconds a create may take: the API server's --request-timeout, and 15 s for etcd."
        ),
    ] = 75
    log_level: Annotated[Level, typer.Option(help="Lowest level to log.")] = "info"
    log_format: Annotated[Format, typer.Option(help="json for programs, console for people.")] = "json"

    def __post_init__(self) -> None:
        _ = self.prometheus

    @property
    def replica(self) -> str:
        """The name of this process among the replicas."""
        return self.identity or gethostname()

    @property
    def prometheus(self) -> PrometheusServer | None:
        """Return the Prometheus that the page asks, if one is named. Raises typer.BadParameter."""
        url, labels = self.prometheus_url, self.prometheus_labels or ()
        if not url:
            return None
        if not url.startswith("https://" if self.prometheus_token_file else ("http://", "https://")):
            because = "https://, because a token goes with each question"
            wanted = because if self.prometheus_token_file else "http:// or https://"
            raise typer.BadParameter(f"must begin with {wanted}", param_hint="--prometheus-url")
        if wrong := next((each for each in labels if "=" not in each), None):
            raise typer.BadParameter(f"{wrong} is not LABEL=VALUE", param_hint="--prometheus-label")
        by_name = dict(each.split("=", 1) for each in labels)
        return PrometheusServer(url, by_name, self.prometheus_token_file, self.prometheus_ca_file)
