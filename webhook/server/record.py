"""Records verdicts: counters for all, a log line for each refusal, and an event for each refusal in Enforce.

In Audit a log line names each tier that would be assigned. Demotions and weak guesses get events too. The module also
adds the mark of the replica to the answers to the dry runs of `gpu-tiers check`.
"""

import logging
import time
from collections.abc import Callable
from typing import Any, Literal

import msgspec

from webhook.admission.review import Request, flat
from webhook.admission.reviewer import Verdict
from webhook.admission.webhook import under
from webhook.config.errors import ConfigError
from webhook.controllers.event_writer import EventReason, Notice
from webhook.objects.pods import Metadata, Named, OwnerReference
from webhook.objects.refusal import Phrase, Refusal, Refused, shown
from webhook.objects.view import read
from webhook.policy.assignment.assigned_by import assigned_by
from webhook.policy.values.tier_policy import Mode
from webhook.report.latest import ANNOTATION, ReplicaMark, VerdictShown
from webhook.sentences.sentence import sentence
from webhook.server.endpoint import Handler
from webhook.server.metrics import Metrics

log = logging.getLogger(__name__)

LONGEST_OWNER = 1024
"""The most characters of an owner reference. Names and groups have 253 at most."""


class Recorder(msgspec.Struct, frozen=True):
    """Records every verdict, as it is before the mode softens it.

    `tell` gets each final refusal in Enforce of a namespaced object. In Enforce and Warn it also gets each
    object that is created without a refusal, and was demoted or has too weak a guess of its type. `show` gets each
    verdict of validation on an object that is ours. Neither gets dry runs.
    """

    metrics: Metrics
    tell: Callable[[Notice], None] | None = None
    show: Callable[[VerdictShown], None] | None = None

    def __call__(self, webhook: str, request: Request, verdict: Verdict, mode: Mode) -> None:
        """Count a review by its answer, and log a refusal even if the mode admits the object.

        In Audit, log the tier that would be assigned. Call `tell` and `show`. A dry run is counted only as a review,
        because it admits and refuses nothing.
        """
        answer, assigned, created = under(mode, verdict), verdict.assignment, request.operation == "CREATE"
        self.metrics.review(f"/{webhook}", request.operation, answer.outcome)
        if webhook == "validate" and not request.dry_run:
            if self.show is not None and verdict.ours:
                self.show(_shown(request, verdict, answer))
            # A guess that was not allowed to raise the tier.
            weak = next((each for each in verdict.warnings if each.id == "guess-too-weak"), None)
            if assigned is not None and weak is not None:
                self.metrics.count("gpu_tiers_weak_guesses_total", _tier(verdict))
            # Only admitted pods are counted, because workloads use no GPUs themselves.
            if assigned is not None and answer.refusal is None and created and request.kind.kind == "Pod":
                grade = assigned.evidence.grade.name.lower() if assigned.evidence else ""
                self.metrics.count("gpu_tiers_admissions_total", _tier(verdict), assigned.step, grade, mode.name)
            # A controller reads no warnings and shows none to its user.
            if self.tell is not None and verdict.refusal is None and created and mode is not Mode.Audit:
                if weak is not None:
                    self.tell(_notice(request, "GuessTooWeak", sentence(weak), exists=True))
                if assigned is not None and assigned.tier is not None and assigned.demoted_from:
                    lacks, evicted = assigned.lacks, assigned.evicted
                    lower = Phrase("runs-lower", lacks=lacks, tier=assigned.tier.name, evicted=evicted)
                    self.tell(_notice(request, "Demoted", sentence(lower), exists=True))
        if verdict.refusal is not None:
            self._refused(request, verdict, verdict.refusal, mode)
        elif webhook == "mutate" and assigned is not None and mode is Mode.Audit:
            said = {"assigned_by": str(assigned_by(assigned)), **_named(request, verdict)}
            log.log(_level(request), "would be assigned", said)

    def _refused(self, request: Request, verdict: Verdict, refusal: Refusal, mode: Mode) -> None:
        said = {"mode": mode.name, "reason": sentence(refusal), **_named(request, verdict)}
        if verdict.undecided:
            log.warning("undecided", said)
            return
        log.log(_level(request), "refused" if mode is Mode.Enforce else "would be refused", said)
        if request.dry_run:
            return
        self.metrics.count("gpu_tiers_denials_total", refusal.reason, mode.name)
        if mode is not Mode.Enforce:
            self.metrics.count("gpu_tiers_would_refuse_total", mode.name, _tier(verdict), verdict.tenant or "")
            return
        self.metrics.count("gpu_tiers_refusals_total", _tier(verdict), verdict.tenant or "")
        if self.tell is not None and request.namespace:  # a TenantQuota has no controller that hides the answer
            # A refused update leaves the object as it is, so no pod is missing.
            is_change, over_quota = request.operation == "UPDATE", verdict.over_quota and bool(verdict.tenant)
            reason: EventReason = "UpdateRefused" if is_change else "OverQuota" if over_quota else "Refused"
            over_quota_of = verdict.tenant if verdict.over_quota else None
            self.tell(_notice(request, reason, sentence(refusal), over_quota_of, exists=is_change))


def _level(request: Request) -> int:
    """Return the log level of a verdict: debug for the dry runs of `gpu-tiers check`, which affect no user."""
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
    """Return a verdict for the page. By the `answer`, which the mode softens, it is refused or would be refused."""
    assigned, softened = verdict.assignment, verdict.refusal is not None and answer.refusal is None
    metadata = _metadata(request)
    name, owner = request.name or metadata.shown_name, _controller(metadata)
    maker = verdict.workload or (f"{owner.kind}/{owner.name}" if owner else "")
    lower = [sentence(each) for each in verdict.warnings if each.id == "some-demoted"]
    why = "; ".join([str(assigned_by(assigned)), *lower]) if assigned else ""
    return VerdictShown(
        time=time.time(),
        kind=request.kind.kind,
        namespace=request.namespace,
        name=name,
        outcome=WOULD if softened else "queued" if answer.queued else _OUTCOMES[answer.outcome],
        tier=_tier(verdict),
        tenant=verdict.tenant or "",
        why=sentence(verdict.refusal) if verdict.refusal else why,
        trace=tuple(map(sentence, assigned.trace)) if assigned else (),
        workload=maker or f"{request.kind.kind}/{name}",
        reason=verdict.refusal.reason if verdict.refusal else "",
    )


_OUTCOMES = {"allowed": "admitted", "patched": "admitted", "denied": "refused", "undecided": "try again"}
WOULD = "would be refused"


def _notice(
    request: Request, reason: EventReason, text: str, over_quota_of: str | None = None, *, exists: bool
) -> Notice:
    kind, found = request.kind, _metadata(request)
    name = shown(request.name or found.shown_name)
    itself = None
    if exists:
        api_version = f"{kind.group}/{kind.version}" if kind.group else kind.version
        itself = OwnerReference(api_version, kind.kind, found.name or request.name, found.uid)
    controller = _controller(found)
    return Notice(reason, kind.kind, request.namespace, name, flat(text), controller, itself, over_quota_of)


def _metadata(request: Request) -> Metadata:
    try:
        return read(request.object, Named).metadata
    except (Refused, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return Metadata()


def _controller(metadata: Metadata) -> OwnerReference | None:
    """Return the controllerRef; None if it is huge, because it stays in memory and users can write anything into it."""
    found = metadata.controller
    return found if found and len(found.api_version + found.kind + found.name + found.uid) <= LONGEST_OWNER else None


def _tier(verdict: Verdict) -> str:
    return verdict.assignment.tier.name if verdict.assignment and verdict.assignment.tier else ""


def note_reload(metrics: Metrics, error: ConfigError | None) -> None:
    """Count and log a reload of the policy file."""
    metrics.count("gpu_tiers_policy_reloads_total", "failure" if error else "success")
    if error is None:
        log.info("policy changed")
    else:
        log.error("policy not taken, the last good one stays active", {"problems": error.problems})


_ASKS = f'"{ANNOTATION}"'.encode()
"""The annotation in quotes, because the names of other annotations begin like it."""

Mark = Callable[[Literal["mutate", "validate"]], ReplicaMark]


def asks_for_mark(request: Request) -> bool:
    """Tell whether a request is a dry run whose object has the annotation of `gpu-tiers check`."""
    return request.dry_run and _ASKS in bytes(request.object)


def marked(webhook: Literal["mutate", "validate"], handler: Handler, mark: Mark) -> Handler:
    """Return a handler that adds the mark of this replica, as a warning, to the answers to dry runs that ask for it."""

    async def answer(request: Request, patience: float) -> bytes:
        answered = await handler(request, patience)
        if not asks_for_mark(request):
            return answered
        review: dict[str, Any] = msgspec.json.decode(answered)
        review["response"].setdefault("warnings", []).append(mark(webhook).warning())
        return msgspec.json.encode(review)

    return answer
