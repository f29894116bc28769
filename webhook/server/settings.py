"""The settings of `gpu-tiers serve`. settings.yaml in this folder has the help and the limits of each option."""

import json
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from socket import gethostname
from urllib.parse import urlsplit

import msgspec
import typer

from webhook.server.logs import Format, Level


class Certificates(StrEnum):
    """The source of the serving certificate."""

    FILES = "files"
    SELF_MANAGED = "self-managed"


class PrometheusServer(msgspec.Struct, frozen=True):
    """A Prometheus. `labels` select the metrics of this cluster. The token and the CA are read at each query."""

    url: str
    labels: Mapping[str, str]
    token_file: Path | None
    ca_file: Path | None

    @property
    def name(self) -> str:
        """The host and port of the URL, without user and password."""
        return urlsplit(self.url).netloc.rpartition("@")[2]

    @property
    def matchers(self) -> str:
        """The labels as a selector of PromQL, whose strings are quoted as in JSON; "" without labels."""
        pairs = ",".join(f"{label}={json.dumps(value)}" for label, value in self.labels.items())
        return f"{{{pairs}}}" if pairs else ""


class Settings(msgspec.Struct, frozen=True):
    """The settings of one process, each with its option. A port that is None is not opened.

    Raises typer.BadParameter if the options of Prometheus are wrong.
    """

    policy: Path = Path("/etc/gpu-tiers/policy.yaml")
    host: str = "0.0.0.0"
    port: int = 9443
    metrics_port: int = 8080
    page_port: int | None = None
    page_tls_port: int | None = None
    page_audiences: list[str] | None = None
    reports_port: int | None = None
    reports_service: str = "gpu-tiers-reports"
    hand_over_port: int | None = None
    pod_ip: str = ""
    prometheus_url: str | None = None
    prometheus_labels: list[str] | None = None
    prometheus_token_file: Path | None = None
    prometheus_ca_file: Path | None = None
    client_ca: Path | None = None
    client_names: list[str] | None = None
    certificates: Certificates = Certificates.SELF_MANAGED
    cert_dir: Path = Path("/var/run/gpu-tiers/tls")
    namespace: str = "gpu-tiers"
    service: str = "gpu-tiers"
    secret: str = "gpu-tiers-tls"  # noqa: S105 - a name
    configuration: str = "zz-gpu-tiers"
    ceilings: str = "gpu-tiers-ceilings"
    config_map: str = "gpu-tiers"
    exempt_namespaces: list[str] | None = None
    dns_names: list[str] | None = None
    kubeconfig: Path | None = None
    identity: str = ""
    lease: str = "gpu-tiers"
    lease_seconds: int = 15
    create_timeout: float = 75
    log_level: Level = "info"
    log_format: Format = "json"

    def __post_init__(self) -> None:
        _ = self.prometheus

    @property
    def replica(self) -> str:
        """The name of this process among the replicas."""
        return self.identity or gethostname()

    @property
    def prometheus(self) -> PrometheusServer | None:
        """Return the Prometheus that the page asks; None if none is named. Raises typer.BadParameter."""
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
