"""What `gpu-tiers serve` is told on its command line."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path


class Certificates(StrEnum):
    """Where the serving certificate comes from."""

    FILES = "files"
    SELF_MANAGED = "self-managed"


class LedgerKind(StrEnum):
    """Where charges are kept."""

    KUBERNETES = "kubernetes"
    MEMORY = "memory"


@dataclass(frozen=True, slots=True)
class Election:
    """How replicas agree on a leader: as whom they compete for which Lease, held for how many seconds.

    `create_timeout`: seconds after which a create that was let in has been stored or has failed.
    """

    namespace: str
    lease: str
    identity: str
    lease_seconds: int
    create_timeout: float


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of one process. `configuration` is the name of both webhook configurations.

    The page is on loopback at `page_port`, and on `host` at `page_tls_port` for those with a token for one of
    `page_audiences`; None: not there.
    """

    policy: Path
    host: str
    port: int
    metrics_port: int
    page_port: int | None
    page_tls_port: int | None
    page_audiences: tuple[str, ...]
    certificates: Certificates
    cert_dir: Path
    namespace: str
    service: str
    secret: str
    configuration: str
    dns_names: tuple[str, ...]
    kubeconfig: Path | None
    ledger: LedgerKind
    election: Election
