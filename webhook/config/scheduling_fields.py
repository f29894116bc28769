"""Which scheduler a tier's pods go to, and into which queue: the fields of the policy file."""

import re
from typing import Annotated, Self

from pydantic import AfterValidator, model_validator

from webhook.config.section import Section
from webhook.policy.placement.schedulers import UNNAMED
from webhook.policy.values.scheduling import USUAL_NAMES, Queue, Scheduling, System

_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?")


def _name(text: str) -> str:
    if not _NAME.fullmatch(text):
        raise ValueError(f'"{text[:63]}" is no name; write small letters and digits, - . between')
    return text


Name = Annotated[str, AfterValidator(_name)]


class QueueSection(Section):
    """A queue of Volcano or of KAI. It has to exist; a pod that such a scheduler places goes into it."""

    system: System
    name: Name


class SchedulingSection(Section):
    """The scheduler of a tier's pods, and their queue. What a workload names itself stays."""

    scheduler_name: Name | None = None
    queue: QueueSection | None = None

    @model_validator(mode="after")
    def _of_one_scheduler(self) -> Self:
        if self.scheduler_name in UNNAMED:
            raise ValueError(f"schedulerName {self.scheduler_name} is what every pod has; leave it out")
        theirs = USUAL_NAMES.get(self.scheduler_name or "")
        if self.queue is not None and theirs not in (None, self.queue.system):
            raise ValueError(
                f"schedulerName {self.scheduler_name} is {theirs}'s, which knows no queues of {self.queue.system}"
            )
        return self

    def scheduling(self) -> Scheduling:
        """As policy knows it."""
        queue = Queue(self.queue.system, self.queue.name) if self.queue else None
        return Scheduling(self.scheduler_name or "", queue)
