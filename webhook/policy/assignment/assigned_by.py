"""The annotation that says on an object by what it got its tier: how it is written, and how it is read again.

It stands there for as long as the object lives, and anybody can write it. Other code asks what is read here, and looks
at no text. Earlier versions wrote the same line.
"""

import re
from collections.abc import Mapping

import msgspec

from webhook.policy.assignment.request import Assignment
from webhook.sentences.parts import REASONS
from webhook.sentences.sentence import sentence

ASSIGNED_BY = "gpu-tiers.dev/assigned-by"

_LINE = re.compile(r"(?P<step>[a-z-]+): (?P<reason>.*?)(?:; demoted from (?P<demoted_from>[^;]*))?", re.DOTALL)
_OWN_LABEL = REASONS["label-says"].format(bearer="the pod", tier="")
_OWN_CLASS = REASONS["class-is"].format(field="priorityClassName", tier="")
_KEPT_CLASS = REASONS["class-kept"].partition("{")[0]


class AssignedBy(msgspec.Struct, frozen=True):
    """The step that decided, its reason in words, and the tier from which the object was demoted, "" for none."""

    step: str
    reason: str
    demoted_from: str = ""

    def __str__(self) -> str:
        demoted = f"; demoted from {self.demoted_from}" if self.demoted_from else ""
        return f"{self.step}: {self.reason}{demoted}"

    @property
    def workload_type(self) -> str:
        """The type that gave the tier, as Evidence writes it; "" where another step did."""
        return self.reason.partition(",")[0] if self.step == "workload-type" else ""

    @property
    def names_own_label(self) -> bool:
        """Whether the label on the pod itself is its author's."""
        return self.step == "label" and self.reason.startswith(_OWN_LABEL)

    @property
    def names_own_class(self) -> bool:
        """Whether the class on the pod itself is its author's."""
        return self.step == "class" and self.reason.startswith((_OWN_CLASS, _KEPT_CLASS))


def assigned_by(assignment: Assignment) -> AssignedBy:
    """What is to be written of an assignment."""
    return AssignedBy(assignment.step, sentence(assignment.reason), assignment.demoted_from or "")


def read_assigned_by(annotations: Mapping[str, str]) -> AssignedBy | None:
    """What stands on an object; None where nothing does, or nothing that gpu-tiers would write."""
    return parsed(annotations.get(ASSIGNED_BY, ""))


def parsed(text: str) -> AssignedBy | None:
    """The annotation's text, read."""
    line = _LINE.fullmatch(text)
    return AssignedBy(line["step"], line["reason"], line["demoted_from"] or "") if line else None
