"""Which scheduler the pods of a tier go to, and into which of its queues, as the policy file says it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

System = Literal["Volcano", "KAI"]
"""Schedulers with queues of their own. Kueue is none: it queues what any scheduler places."""

USUAL_NAMES: Mapping[str, System] = {"volcano": "Volcano", "kai-scheduler": "KAI"}
"""What they are called where nobody renames them (schedulerName)."""


@dataclass(frozen=True, slots=True)
class Queue:
    """A queue of a scheduler."""

    system: System
    name: str


@dataclass(frozen=True, slots=True)
class Scheduling:
    """What pods of a tier get where they name none themselves; "" and None: nothing."""

    scheduler: str = ""
    queue: Queue | None = None
