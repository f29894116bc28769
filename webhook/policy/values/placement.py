"""Where the pods of a tier run, as the policy file says it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Strategy = Literal["Pack", "Spread"]


@dataclass(frozen=True, slots=True)
class Placement:
    """What pods of a tier get where they say nothing themselves.

    A strategy goes with its `topology_key`, a label of nodes. `tolerations` are as a pod has them, and `max_runtime` is
    in seconds.
    """

    strategy: Strategy | None = None
    topology_key: str = ""
    tolerations: tuple[Mapping[str, Any], ...] = ()
    node_selector: Mapping[str, str] = field(default_factory=dict)
    max_runtime: int | None = None
