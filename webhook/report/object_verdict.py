"""The verdict on one object and on its pods, shared by review, test, diff, audit and explain."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

import msgspec

from webhook.objects.refusal import AdmissionWarning, Reason
from webhook.policy.assignment.assigned_by import assigned_by
from webhook.policy.assignment.request import Assignment
from webhook.policy.classification.evidence import Evidence
from webhook.policy.values.tenants import OnExceed
from webhook.policy.values.tiers import Tier, active_class
from webhook.report.shown import Shown
from webhook.sentences.sentence import sentence

NONE = "none"


class VerdictName(StrEnum):
    """The verdict's name. An object is denied if any of its pods is; else demoted if any is; else queued if any is.

    A pod is queued only if there is no room for it: with `onExceed: Hold` a pod with room starts at once.
    """

    ALLOWED = "Allowed"
    QUEUED = "Queued"
    DEMOTED = "Demoted"
    DENIED = "Denied"
    LEFT_ALONE = "LeftAlone"


_ABOVE_QUOTA: Mapping[OnExceed, str] = {"Deny": "refused", "Demote": "demoted", "Warn": "admitted", "Hold": "queued"}


class HookDue(Shown, frozen=True):
    """The checkpoint hook that a pod gets, in these containers, with the grace period that it needs."""

    kind: str
    grace_period_seconds: int
    containers: tuple[str, ...] = ()


class ObjectVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """The verdict on one object, judged by itself as if it were created now in Enforce.

    `tiers` are several only if its kind is unknown and its parts differ; `assignment` is the first of theirs. `message`
    is the first refusal, "" for none, and `reason` its reason. `hooks` are those of its pods, and `on_exceed` is what
    happens to them if a row is full. `source` is its file and line, "" in a cluster. `adoption`: no tier evicts yet.
    """

    kind: str
    group: str = ""
    namespace: str
    name: str
    source: str = ""
    verdict: VerdictName = VerdictName.LEFT_ALONE
    tiers: tuple[Tier, ...] = ()
    assignment: Assignment | None = None
    evidence: Evidence | None = None
    hooks: tuple[HookDue, ...] = ()
    on_exceed: tuple[OnExceed, ...] = ()
    message: str = ""
    reason: Reason = Reason.INVALID
    shown_warnings: tuple[AdmissionWarning, ...] = ()
    adoption: bool = False

    @property
    def tier(self) -> str:
        """Return the names of its tiers; "" if it gets none."""
        return ", ".join(tier.name for tier in self.tiers)

    @property
    def ranks(self) -> str:
        """Return the classes of its tiers with their values: `gpu-training 1000, evicts nobody`; `none` for no tier."""
        ranks = []
        for tier in self.tiers:
            never = self.adoption or tier.preemption_policy == "Never"
            name = active_class(tier, adoption=self.adoption)
            ranks.append(f"{name} {tier.value}{', evicts nobody' if never else ''}")
        return ", ".join(ranks) or NONE

    @property
    def step(self) -> str:
        return self.assignment.step if self.assignment else NONE

    @property
    def decided_by(self) -> str:
        """Return the value of the annotation assigned-by."""
        return str(assigned_by(self.assignment)) if self.assignment else ""

    @property
    def warnings(self) -> tuple[str, ...]:
        return tuple(map(sentence, self.shown_warnings))

    @property
    def workload_type(self) -> str:
        return self.evidence.type.value if self.evidence else "unknown"

    @property
    def grade(self) -> str:
        return self.evidence.grade.name.lower() if self.evidence else ""

    @property
    def hook_kinds(self) -> str:
        return ", ".join(dict.fromkeys(each.kind for each in self.hooks)) or NONE

    @property
    def hooks_with_grace(self) -> str:
        graces = ", ".join(dict.fromkeys(str(each.grace_period_seconds) for each in self.hooks))
        return f"{self.hook_kinds}, {graces} s of grace" if graces else self.hook_kinds

    @property
    def above_quota(self) -> str:
        """Return what happens to its pods if a row that counts them is full."""
        return ", ".join(_ABOVE_QUOTA[each] for each in self.on_exceed) or "no row counts it"

    def as_fields(self) -> dict[str, Any]:
        """Return its fields by name, to make a subclass with more fields."""
        return {name: getattr(self, name) for name in ObjectVerdict.__struct_fields__}

    def as_json(self) -> dict[str, Any]:
        """Return the fields that every answer has for an object (docs/questions.md); empty ones are null."""
        return {
            "kind": self.kind,
            "group": self.group,
            "namespace": self.namespace,
            "name": self.name,
            "source": self.source or None,
            "verdict": self.verdict,
            "allowed": self.verdict is not VerdictName.DENIED,
            "tier": self.tier or None,
            "step": self.assignment.step if self.assignment else None,
            "decidedBy": self.decided_by or None,
            "workloadType": self.evidence.type.value if self.evidence else None,
            "evidence": str(self.evidence) if self.evidence else None,
            "grade": self.grade or None,
            "hooks": self.hooks,
            "message": self.message or None,
            "warnings": self.warnings,
        }
