"""Checkpoint hooks as values: what a hook is, and which the policy gives."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from webhook.policy.workloads.workload_types import WorkloadType

HookKind = Literal["file", "http", "exec", "signal", "sigterm", "sleep", "none"]


@dataclass(frozen=True, slots=True)
class Hook:
    """A checkpoint hook. `seconds` is what a save may take; for `sleep`, how long it sleeps.

    The table of kinds says which of the other fields a kind takes, and their defaults.
    `path` is the folder of the `file` protocol, or the path of the `http` request.
    """

    kind: HookKind = "none"
    seconds: int = 120
    path: str = ""
    port: int | str = 0
    command: tuple[str, ...] = ()
    signal: str = ""
    done_file: str = ""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Hooks by workload type and by tier. Times in seconds; the cap bounds what a hook adds to a grace period."""

    hooks: Mapping[WorkloadType, Hook] = field(default_factory=dict)
    tiers: Mapping[str, Hook] = field(default_factory=dict)
    margin: int = 10
    max_grace_period: int = 600
