"""What `gpu-tiers serve` is told on its command line."""

import json
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from urllib.parse import urlsplit

import msgspec


class Certificates(StrEnum):
    """Where the serving certificate comes from."""

    FILES = "files"
    SELF_MANAGED = "self-managed"


class Election(msgspec.Struct, frozen=True):
    """How replicas agree on a leader: as whom they compete for which Lease, held for how many seconds.

    `create_timeout`: seconds after which a create that was let in has been stored or has failed.
    """

    namespace: str
    lease: str
    identity: str
    lease_seconds: int
    create_timeout: float


class PrometheusServer(msgspec.Struct, frozen=True):
    """Where one is. `labels` tell our metrics from another cluster's; the files are read at each question."""

    url: str
    labels: Mapping[str, str]
    token_file: Path | None
    ca_file: Path | None

    @property
    def name(self) -> str:
        """Host and port, without a password that the address may have."""
        return urlsplit(self.url).netloc.rpartition("@")[2]

    @property
    def matchers(self) -> str:
        """The labels as PromQL has them, whose strings are as those of JSON."""
        told = ",".join(f"{label}={json.dumps(value)}" for label, value in self.labels.items())
        return f"{{{told}}}" if told else ""


class Settings(msgspec.Struct, frozen=True):
    """The settings of one process. `configuration` is the name of both webhook configurations, `ceilings` that of the
    ConfigMap from which the API server reads the ceilings of tenants, `config_map` that of the one with the policy.

    The page is on loopback at `page_port`, and on `host` at `page_tls_port` for those with a token for one of
    `page_audiences`; None: not there. Its chart is by `prometheus`, if one is named. Trainings report at `reports_port`
    of the headless Service `reports_service`; None: nowhere. While it leads, the other replicas hand it their bookings
    at `hand_over_port` of `pod_ip`, "" where that is `host`; None: each writes its own. Whoever may ask for reviews
    knows what `path_secret_file` holds, and has a certificate from `client_ca` with one of `client_names`; each may be
    absent.
    """

    policy: Path
    host: str
    port: int
    metrics_port: int
    page_port: int | None
    page_tls_port: int | None
    page_audiences: tuple[str, ...]
    reports_port: int | None
    reports_service: str
    hand_over_port: int | None
    pod_ip: str
    prometheus: PrometheusServer | None
    path_secret_file: Path | None
    client_ca: Path | None
    client_names: tuple[str, ...]
    certificates: Certificates
    cert_dir: Path
    namespace: str
    service: str
    secret: str
    configuration: str
    ceilings: str
    config_map: str
    dns_names: tuple[str, ...]
    kubeconfig: Path | None
    election: Election
