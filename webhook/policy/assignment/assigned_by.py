"""Reads and writes the annotation that says how an object got its tier.

The annotation stays for as long as the object lives, and anybody can write it. Other code uses the parsed value and
reads no text. Earlier versions wrote the same format.
"""

import re
from collections.abc import Mapping

import msgspec

from webhook.objects.podgroups import PodGroup
from webhook.objects.pods import Pod
from webhook.policy.assignment.request import TIER_LABEL, Assignment
from webhook.sentences.sentence import REASONS, sentence

ASSIGNED_BY = "gpu-tiers.dev/assigned-by"

_DEMOTED = r"; demoted from (?P<demoted_from>[^; ]*)(?: to (?P<demoted_to>[^; ]+))?"
_LINE = re.compile(rf"(?P<step>[a-z-]+): (?P<reason>.*?)(?:{_DEMOTED})?", re.DOTALL)
_OWN_LABEL = REASONS["label-says"].format(bearer="the pod", tier="")
_OWN_CLASS = REASONS["class-is"].format(field="priorityClassName", tier="")
_UNCHANGED_CLASS = REASONS["class-kept"].partition("{")[0]


class AssignedBy(msgspec.Struct, frozen=True):
    """The step that decided, its reason in words, and the tiers of a demotion ("" for none)."""

    step: str
    reason: str
    demoted_from: str = ""
    demoted_to: str = ""

    def __str__(self) -> str:
        to = f" to {self.demoted_to}" if self.demoted_to else ""
        demoted = f"; demoted from {self.demoted_from}{to}" if self.demoted_from else ""
        return f"{self.step}: {self.reason}{demoted}"

    @property
    def workload_type(self) -> str:
        """Return the type that gave the tier, as Evidence writes it; "" if another step did."""
        return self.reason.partition(",")[0] if self.step == "workload-type" else ""

    @property
    def names_own_label(self) -> bool:
        """Tell whether the tier comes from the label on the pod itself, not from that of an owner."""
        return self.step == "label" and self.reason.startswith(_OWN_LABEL)

    @property
    def names_own_class(self) -> bool:
        """Tell whether the pod's own priorityClassName decided: it names the tier, or was kept outside the tiers."""
        return self.step == "class" and self.reason.startswith((_OWN_CLASS, _UNCHANGED_CLASS))


def assigned_by(assignment: Assignment) -> AssignedBy:
    """Return the annotation's value for an assignment."""
    higher, tier = assignment.demoted_from or "", assignment.tier
    lower = tier.name if higher and tier else ""
    return AssignedBy(assignment.step, sentence(assignment.reason), higher, lower)


def read_assigned_by(annotations: Mapping[str, str]) -> AssignedBy | None:
    """Return the parsed annotation of an object; None without one, or if it has another format."""
    return parsed(annotations.get(ASSIGNED_BY, ""))


def parsed(text: str) -> AssignedBy | None:
    """Parse the annotation's text; None if it has another format."""
    line = _LINE.fullmatch(text)
    if line is None:
        return None
    return AssignedBy(line["step"], line["reason"], line["demoted_from"] or "", line["demoted_to"] or "")


def class_borne(found: Pod | PodGroup) -> str:
    """Return the PriorityClass of a pod or a PodGroup, which may be no tier's; "" without one.

    A class is immutable, and our webhook has accepted it. 1.36 may store neither a class nor a priority on a PodGroup.
    Then the tier is that of our annotation if the group was demoted, and that of its label otherwise.
    """
    name = found.spec.priority_class_name
    if name or isinstance(found, Pod) or found.spec.priority is not None:
        return name
    written = read_assigned_by(found.metadata.annotations)
    lower = written.demoted_to if written else ""
    return lower or found.metadata.labels.get(TIER_LABEL, "")
