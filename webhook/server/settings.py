"""What `gpu-tiers serve` is told on its command line."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path


class Certificates(StrEnum):
    """Where the serving certificate comes from."""

    FILES = "files"
    SELF_MANAGED = "self-managed"


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of one process. `configuration` is the name of both webhook configurations."""

    policy: Path
    host: str
    port: int
    metrics_port: int
    certificates: Certificates
    cert_dir: Path
    namespace: str
    service: str
    secret: str
    configuration: str
    dns_names: tuple[str, ...]
    kubeconfig: Path | None
