"""Where a tier's pods run, by which scheduler and in which queue: the fields of the policy file.

What the API server would refuse on a pod is refused here, or every pod of the tier would be refused later.
"""

import re
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from webhook.config.sections import Section
from webhook.policy.placement import UNNAMED
from webhook.policy.values.tier_policy import USUAL_NAMES, Placement, Queue, Scheduling, Strategy, System

LONGEST_RUNTIME = 2**31 - 1
"""The largest activeDeadlineSeconds of a pod."""

_NAME = r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"


def _key(text: str) -> str:
    if not re.fullmatch(rf"([a-z0-9.-]{{1,253}}/)?{_NAME}", text):
        raise ValueError(f'"{text[:63]}" is no label; write it as in topology.kubernetes.io/rack')
    return text


def _value(text: str) -> str:
    if not re.fullmatch(rf"({_NAME})?", text):
        raise ValueError(f'"{text[:63]}" is no value of a label; write letters and digits, - _ . between')
    return text


LabelKey = Annotated[str, AfterValidator(_key)]
LabelValue = Annotated[str, AfterValidator(_value)]


class TolerationSection(Section):
    """A toleration as a pod has it. Without `key` it tolerates every taint, without `effect` every effect."""

    key: LabelKey | None = None
    operator: Literal["Equal", "Exists"] = "Equal"
    value: LabelValue | None = None
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = None
    toleration_seconds: int | None = None

    @model_validator(mode="after")
    def _as_a_pod_may_have_it(self) -> Self:
        if self.operator == "Equal" and self.key is None:
            raise ValueError("operator Equal needs a key; operator Exists without one is for all taints")
        if self.operator == "Exists" and self.value is not None:
            raise ValueError("operator Exists takes no value")
        if self.toleration_seconds is not None and self.effect != "NoExecute":
            raise ValueError("tolerationSeconds goes with effect: NoExecute")
        return self

    def given(self) -> dict[str, Any]:
        return self.model_dump(by_alias=True, exclude_none=True)


class PlacementSection(Section):
    """Where the pods of a tier run, and for how many seconds at most. What a pod says itself stays.

    `Pack` draws a gang together and `Spread` keeps replicas apart, both by the node label `topologyKey`, and as a wish.
    """

    strategy: Strategy | None = None
    topology_key: LabelKey | None = None
    tolerations: tuple[TolerationSection, ...] = ()
    node_selector: dict[LabelKey, LabelValue] = Field(default_factory=dict)
    max_runtime_seconds: int | None = Field(default=None, ge=1, le=LONGEST_RUNTIME)

    @model_validator(mode="after")
    def _both_or_none(self) -> Self:
        if (self.strategy is None) != (self.topology_key is None):
            raise ValueError("strategy and topologyKey go together: write both or none")
        return self

    def placement(self) -> Placement:
        return Placement(
            strategy=self.strategy,
            topology_key=self.topology_key or "",
            tolerations=tuple(each.given() for each in self.tolerations),
            node_selector=self.node_selector,
            max_runtime=self.max_runtime_seconds,
        )


_SCHEDULER = re.compile(r"[a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?")


def _scheduler(text: str) -> str:
    if not _SCHEDULER.fullmatch(text):
        raise ValueError(f'"{text[:63]}" is no name; write small letters and digits, - . between')
    return text


SchedulerName = Annotated[str, AfterValidator(_scheduler)]


class QueueSection(Section):
    """A queue of Volcano or of KAI. It has to exist; a pod that such a scheduler places goes into it."""

    system: System
    name: SchedulerName


class SchedulingSection(Section):
    """The scheduler of a tier's pods, and their queue. What a workload names itself stays."""

    scheduler_name: SchedulerName | None = None
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
        queue = Queue(self.queue.system, self.queue.name) if self.queue else None
        return Scheduling(self.scheduler_name or "", queue)
