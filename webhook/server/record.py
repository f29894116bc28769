"""Records verdicts: a log line and an event for each refusal, counters for all."""

import logging
import time
from collections.abc import Callable, Iterator

import msgspec

from webhook.admission.review import Request, flat
from webhook.admission.reviewer import Verdict
from webhook.admission.webhook import under
from webhook.config.errors import ConfigError
from webhook.controllers.verdict_events import EventReason, Notice
from webhook.objects.pods import Metadata, Named, OwnerReference
from webhook.objects.refusal import AdmissionWarning, Phrase, Refusal, Refused, shown
from webhook.objects.view import read
from webhook.policy.assignment.assigned_by import assigned_by
from webhook.policy.values.tier_policy import Mode
from webhook.report.latest import VerdictShown
from webhook.sentences.sentence import sentence
from webhook.server.marked import asks_for_mark
from webhook.server.metric_table import ADMISSIONS, DENIALS, HELD_BACK, POLICY_RELOADS, REFUSALS, WOULD_REFUSE
from webhook.server.metrics import Metrics

log = logging.getLogger(__name__)

LONGEST_OWNER = 1024
"""Characters of an owner reference: names have 253 at most, and so have groups."""


class Recorder(msgspec.Struct, frozen=True):
    """Told of every verdict before the mode softens it.

    `tell` is handed what Enforce refused, and what was let in otherwise than it asked, dry runs aside;
    `show` what was decided of each object.
    """

    metrics: Metrics
    tell: Callable[[Notice], None] | None = None
    show: Callable[[VerdictShown], None] | None = None

    def __call__(self, webhook: str, request: Request, verdict: Verdict, mode: Mode) -> None:
        """Count the review as it is answered; log a refusal also where the mode lets it through.

        A dry run lets nothing in and refuses nothing: it is a review, and no more is counted of it.
        """
        answer = under(mode, verdict)
        self.metrics.review(f"/{webhook}", request.operation, answer.outcome)
        if webhook == "validate" and not request.dry_run:
            if self.show is not None and verdict.ours:
                self.show(_shown(request, verdict, answer))
            self._count_assigned(request, verdict, mode, let_in=answer.refusal is None)
            if self.tell is not None and request.operation == "CREATE" and mode is not Mode.Audit:
                for notice in _notices(request, verdict) if verdict.refusal is None else ():
                    self.tell(notice)
        if verdict.refusal is not None:
            self._refused(request, verdict, verdict.refusal, mode)
        elif webhook == "mutate" and verdict.assignment is not None and mode is Mode.Audit:
            assigned = str(assigned_by(verdict.assignment))
            log.log(_level(request), "would be assigned", {"assigned_by": assigned, **_named(request, verdict)})

    def _count_assigned(self, request: Request, verdict: Verdict, mode: Mode, *, let_in: bool) -> None:
        """A pod that is let in, and a guess that was held back; workloads hold nothing themselves."""
        assigned, tier = verdict.assignment, _tier(verdict)
        if assigned is None:
            return
        if _held_back(verdict) is not None:
            self.metrics.count(HELD_BACK, tier)
        if let_in and request.operation == "CREATE" and request.kind.kind == "Pod":
            grade = assigned.evidence.grade.name.lower() if assigned.evidence else ""
            self.metrics.count(ADMISSIONS, tier, assigned.step, grade, mode.name)

    def _refused(self, request: Request, verdict: Verdict, refusal: Refusal, mode: Mode) -> None:
        if verdict.undecided:
            log.warning("undecided", {"mode": mode.name, "reason": sentence(refusal), **_named(request, verdict)})
            return
        event = "refused" if mode is Mode.Enforce else "would be refused"
        log.log(_level(request), event, {"mode": mode.name, "reason": sentence(refusal), **_named(request, verdict)})
        if request.dry_run:
            return
        self.metrics.count(DENIALS, refusal.reason, mode.name)
        labels = (_tier(verdict), verdict.tenant or "")
        if mode is Mode.Enforce:
            self.metrics.count(REFUSALS, *labels)
        else:
            self.metrics.count(WOULD_REFUSE, mode.name, *labels)
        if mode is Mode.Enforce and self.tell is not None:
            self.tell(_refusal(request, verdict, refusal))


def _level(request: Request) -> int:
    """Somebody who checks whether the webhook answers is refused nothing that they want."""
    return logging.DEBUG if asks_for_mark(request) else logging.INFO


def _named(request: Request, verdict: Verdict) -> dict[str, object]:
    return {
        "uid": request.uid,
        "kind": request.kind.kind,
        "namespace": request.namespace,
        "name": request.name,
        "user": request.user_info.username,
        "tenant": verdict.tenant,
        "tier": _tier(verdict),
        "dry_run": request.dry_run,
    }


def _shown(request: Request, verdict: Verdict, answer: Verdict) -> VerdictShown:
    """The verdict, and what it came to: only Enforce answers with a refusal."""
    assigned, softened = verdict.assignment, verdict.refusal is not None and answer.refusal is None
    metadata = _metadata(request)
    name, owner = _name(request, metadata), _controller(metadata)
    maker = verdict.workload or (f"{owner.kind}/{owner.name}" if owner else "")
    return VerdictShown(
        time=time.time(),
        kind=request.kind.kind,
        namespace=request.namespace,
        name=name,
        outcome=WOULD if softened else _OUTCOMES[answer.outcome],
        tier=_tier(verdict),
        tenant=verdict.tenant or "",
        why=_why(verdict),
        trace=tuple(map(sentence, assigned.trace)) if assigned else (),
        workload=maker or f"{request.kind.kind}/{name}",
        reason=verdict.refusal.reason if verdict.refusal else "",
    )


_OUTCOMES = {"allowed": "let in", "patched": "let in", "denied": "refused", "undecided": "try again"}
WOULD = "would be refused"


def _why(verdict: Verdict) -> str:
    if verdict.refusal is not None:
        return sentence(verdict.refusal)
    if verdict.assignment is None:
        return ""
    lower = [sentence(each) for each in verdict.warnings if each.id == "some-demoted"]
    return "; ".join([str(assigned_by(verdict.assignment)), *lower])


def _held_back(verdict: Verdict) -> AdmissionWarning | None:
    """The warning of a guess that was not allowed to raise the tier."""
    return next((each for each in verdict.warnings if each.id == "guess-held-back"), None)


def _notices(request: Request, verdict: Verdict) -> Iterator[Notice]:
    """Yield what is told of an object that is admitted. A controller reads no warnings, and shows none to its user."""
    assigned, held_back = verdict.assignment, _held_back(verdict)
    told: dict[EventReason, str] = {"GuessHeldBack": sentence(held_back)} if held_back else {}
    if assigned is not None and assigned.tier is not None and assigned.demoted_from:
        tier, higher = assigned.tier.name, assigned.demoted_from
        lower = Phrase(
            "runs-lower", tier=tier, evicted=assigned.evicted or "", tenant=verdict.tenant or "", higher=higher
        )
        told["Demoted"] = sentence(lower)
    for reason, text in told.items():
        found = _metadata(request)
        itself, name = _existing(request, found), shown(_name(request, found))
        yield Notice(reason, request.kind.kind, request.namespace, name, flat(text), _controller(found), itself)


def _refusal(request: Request, verdict: Verdict, refusal: Refusal) -> Notice:
    """Return the notice of a refusal."""
    metadata = _metadata(request)
    # A pod that is refused a change is there already: its workload lacks none.
    is_change = request.kind.kind == "Pod" and request.operation == "UPDATE"
    mistake: EventReason = "UpdateRefused" if is_change else "Refused"
    return Notice(
        reason="OverQuota" if verdict.over_quota and verdict.tenant else mistake,
        kind=request.kind.kind,
        namespace=request.namespace,
        name=shown(_name(request, metadata)),
        sentence=flat(sentence(refusal)),
        controller=_controller(metadata),
        existing=_existing(request, metadata) if request.operation == "UPDATE" else None,
        over_quota_of=verdict.tenant if verdict.over_quota else None,
    )


def _metadata(request: Request) -> Metadata:
    try:
        return read(request.object, Named).metadata
    except (Refused, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return Metadata()


def _name(request: Request, metadata: Metadata) -> str:
    """Return the name, or its beginning where it is yet to be generated."""
    return request.name or metadata.shown_name


def _controller(metadata: Metadata) -> OwnerReference | None:
    """The controllerRef, for as long as it waits; nobody checks what is written there, so a huge one is none."""
    found = metadata.controller
    return found if found and len(found.api_version + found.kind + found.name + found.uid) <= LONGEST_OWNER else None


def _existing(request: Request, metadata: Metadata) -> OwnerReference:
    kind = request.kind
    api_version = f"{kind.group}/{kind.version}" if kind.group else kind.version
    name = metadata.name or request.name
    return OwnerReference(api_version=api_version, kind=kind.kind, name=name, uid=metadata.uid)


def _tier(verdict: Verdict) -> str:
    return verdict.assignment.tier.name if verdict.assignment and verdict.assignment.tier else ""


def reload_recorder(metrics: Metrics) -> Callable[[ConfigError | None], None]:
    """Told of each reload of the policy file: counts it, and says what is wrong with a broken one."""

    def told(error: ConfigError | None) -> None:
        metrics.count(POLICY_RELOADS, "failure" if error else "success")
        if error is None:
            log.info("policy changed")
        else:
            log.error("policy not taken, the last good one stays in force", {"problems": error.problems})

    return told
