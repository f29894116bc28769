"""The webhook's verdict on one object and on everything that the object creates."""

from collections.abc import Iterator

import msgspec

from webhook.admission.review import Operation
from webhook.admission.reviewer import Verdict
from webhook.cli.manifests.documents import Document
from webhook.cli.manifests.inputs import CLUSTER_SCOPED, OF_NO_NAMESPACE
from webhook.objects.refusal import AdmissionWarning, Reason, Refusal
from webhook.objects.view import Tree
from webhook.policy.classification.evidence import Evidence
from webhook.report.object_verdict import HookDue, ObjectVerdict, VerdictName
from webhook.sentences.sentence import sentence

ELSEWHERE = (
    "no pod template lies where a {kind} should have one (docs/workloads.md, or the policy's kinds), but one with GPUs "
    "seems to lie at {places}; is that the right field?"
)


class Finding(msgspec.Struct, frozen=True):
    """The verdicts on one object and on what it creates. `after` is the object with its patch.

    `pods` are the findings for the pods that a workload would make, one for each of its templates. If the kind is not
    `known`, the webhook sees nothing but the pods and the objects `inside`, as far as their shape shows them. If it is
    known but lacks a template, `elsewhere` are the places of other templates that ask for GPUs. `uncounted` are
    resources with GPU-like names that are not in the policy. `invalid` are the API server's own refusals. `notes` are
    further remarks. `path` is the place of the part in the object, and `count` the number of like pods that it is for.
    """

    document: Document
    verdict: Verdict
    after: Tree
    patch: tuple[Operation, ...] = ()
    guessed: Evidence | None = None
    pods: tuple["Finding", ...] = ()
    count: int = 1
    path: str = ""
    known: bool = True
    inside: tuple["Finding", ...] = ()
    elsewhere: tuple[str, ...] = ()
    uncounted: tuple[str, ...] = ()
    invalid: tuple[Refusal, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        document = self.document
        of_no_namespace = (OF_NO_NAMESPACE | CLUSTER_SCOPED).get(document.kind) == document.group
        return f"{document.kind} {document.name if of_no_namespace else f'{document.namespace}/{document.name}'}"

    @property
    def parts(self) -> tuple["Finding", ...]:
        return (*self.pods, *self.inside)

    @property
    def tiered(self) -> bool:
        """Tell whether the object or anything that it creates gets a tier."""
        return self.verdict.assignment is not None or any(part.tiered for part in self.parts)

    @property
    def allowed(self) -> bool:
        """Tell whether the object and everything that it creates would be admitted."""
        return not self.invalid and self.verdict.refusal is None and all(part.allowed for part in self.parts)

    @property
    def evidence(self) -> Evidence | None:
        """Return the evidence for the workload type, also if the tier was refused; None without any."""
        own = (self.verdict.assignment and self.verdict.assignment.evidence) or self.guessed
        return own if self.known else next((part.evidence for part in self.parts if part.evidence), own)

    @property
    def message(self) -> str | None:
        """Return the first refusal: the object's own, or that of an object that it creates; None for none."""
        own = self.verdict.refusal or next(iter(self.invalid), None)
        return sentence(own) if own else next((part.message for part in self.parts if part.message), None)

    @property
    def refusal_kind(self) -> str:
        """Return a word for programs: the sort of the refusal that `message` has."""
        own = self.verdict
        if own.refusal is not None:
            return "over-quota" if own.over_quota else "undecided" if own.undecided else "refused"
        of_parts = () if self.invalid else self.parts
        return next((part.refusal_kind for part in of_parts if not part.allowed), "refused")

    @property
    def asks_nothing(self) -> str:
        """Return why an object that is left alone asks for nothing from gpu-tiers."""
        if self.elsewhere:
            return ELSEWHERE.format(kind=self.document.kind, places=", ".join(self.elsewhere))
        if self.uncounted:
            return f"it asks for no GPU that counts: {', '.join(self.uncounted)} is not among the policy's resources"
        return "it asks for no GPU and no tier"

    @property
    def hook(self) -> HookDue | None:
        plan, containers = self.verdict.hook, self.after.get("spec", {}).get("containers", [])
        if plan is None:
            return None
        return HookDue(plan.kind, plan.grace, tuple(containers[index].get("name", "") for index in plan.containers))

    @property
    def warnings(self) -> tuple[str, ...]:
        """Return every warning once, including those of the objects that it creates."""
        return tuple(self._warnings)

    @property
    def shown_warnings(self) -> tuple[AdmissionWarning, ...]:
        return tuple(self._warnings.values())

    @property
    def _warnings(self) -> dict[str, AdmissionWarning]:
        own = (*self.document.warnings, *self.verdict.warnings)
        every = (*own, *(warning for part in self.parts for warning in part.shown_warnings))
        return {sentence(each): each for each in every}


def verdict_of(finding: Finding, *, adoption: bool = False) -> ObjectVerdict:
    """Return the verdict of a finding, without the object itself."""
    every, document = list(every_part(finding)), finding.document
    found = [each.verdict.assignment for each in every if each.verdict.assignment]
    decisions = [each.verdict.decision for each in every if each.verdict.decision]
    demoted = [each for each in found if each.demoted_from]
    # The workload's own, or its pods' if they were demoted; for an unknown kind its parts'.
    assignments = [*demoted, *found][:1] if finding.verdict.assignment else found
    if not finding.allowed or not finding.tiered:
        name = VerdictName.LEFT_ALONE if finding.allowed else VerdictName.DENIED
    elif demoted:
        name = VerdictName.DEMOTED
    else:
        name = VerdictName.QUEUED if any(each.verdict.queued for each in every) else VerdictName.ALLOWED
    return ObjectVerdict(
        kind=document.kind,
        group=document.group,
        namespace=document.namespace,
        name=document.name,
        source=document.source,
        verdict=name,
        tiers=tuple(dict.fromkeys(each.tier for each in assignments if each.tier)),
        assignment=assignments[0] if assignments else None,
        evidence=finding.evidence,
        hooks=tuple(dict.fromkeys(hook for each in every if (hook := each.hook))),
        on_exceed=tuple(dict.fromkeys(what for each in decisions if (what := each.on_exceed))),
        message=finding.message or "",
        reason=next((each.verdict.refusal.reason for each in every if each.verdict.refusal), Reason.INVALID),
        shown_warnings=finding.shown_warnings,
        adoption=adoption,
    )


def every_part(finding: Finding) -> Iterator[Finding]:
    yield finding
    for part in finding.parts:
        yield from every_part(part)
