"""Records verdicts: a log line for each refusal, counters for all."""

from collections.abc import Callable

import structlog

from webhook.admission.review import Request
from webhook.admission.verdict import Verdict
from webhook.admission.webhook import under
from webhook.config.errors import ConfigError
from webhook.policy.values.tier_policy import Mode
from webhook.server.metrics import POLICY_RELOADS, REFUSALS, WOULD_REFUSE, Metrics

log = structlog.get_logger(__name__)


class Recorder:
    """Told of every verdict before the mode softens it."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def __call__(self, webhook: str, request: Request, verdict: Verdict, mode: Mode) -> None:
        """Count the review as it is answered; log and count a refusal also where the mode lets it through."""
        self._metrics.review(f"/{webhook}", request.operation, under(mode, verdict).outcome)
        if verdict.refusal is not None:
            self._refused(request, verdict, mode)
        elif webhook == "mutate" and verdict.assignment is not None and mode is Mode.Audit:
            log.info("would be assigned", assigned_by=str(verdict.assignment), **_named(request, verdict))

    def _refused(self, request: Request, verdict: Verdict, mode: Mode) -> None:
        event = "refused" if mode is Mode.Enforce else "would be refused"
        log.info(event, mode=mode.name, reason=verdict.refusal, **_named(request, verdict))
        labels = (_tier(verdict), verdict.tenant or "")
        if mode is Mode.Enforce:
            self._metrics.count(REFUSALS, *labels)
        else:
            self._metrics.count(WOULD_REFUSE, mode.name, *labels)


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


def _tier(verdict: Verdict) -> str:
    return verdict.assignment.tier.name if verdict.assignment and verdict.assignment.tier else ""


def reload_recorder(metrics: Metrics) -> Callable[[ConfigError | None], None]:
    """Told of each reload of the policy file: counts it, and says what is wrong with a broken one."""

    def told(error: ConfigError | None) -> None:
        metrics.count(POLICY_RELOADS, "failure" if error else "success")
        if error is None:
            log.info("policy changed")
        else:
            log.error("policy not taken, the last good one stays in force", problems=error.problems)

    return told
