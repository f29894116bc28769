"""The answer to one review before it is put on the wire, and what each mode lets through of it."""

from dataclasses import dataclass, replace
from typing import Any

from webhook.policy.assignment.request import Assignment
from webhook.policy.checkpoint.hook_plan import HookPlan
from webhook.policy.values.tier_policy import Mode


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is done with an object: a patch (RFC 6902 operations), warnings, a refusal, and the assignment behind them.

    `hook` is what a pod gets for its end, or has got already. All of them empty: the object is not ours.
    """

    assignment: Assignment | None = None
    patch: tuple[dict[str, Any], ...] = ()
    warnings: tuple[str, ...] = ()
    refusal: str | None = None
    tenant: str | None = None
    hook: HookPlan | None = None

    @property
    def ours(self) -> bool:
        """Whether anything was decided about the object: its tier, or that it is refused."""
        return self.assignment is not None or self.refusal is not None

    @property
    def outcome(self) -> str:
        """One word for logs and metrics."""
        if self.refusal is not None:
            return "denied"
        return "patched" if self.patch else "allowed"


def under(mode: Mode, verdict: Verdict) -> Verdict:
    """What a mode lets through: Audit patches, refuses and says nothing; Warn turns a refusal to a warning."""
    match mode:
        case Mode.Audit:
            return Verdict(assignment=verdict.assignment, tenant=verdict.tenant)
        case Mode.Warn if verdict.refusal is not None:
            return replace(verdict, refusal=None, warnings=(*verdict.warnings, f"would be refused: {verdict.refusal}"))
    return verdict
