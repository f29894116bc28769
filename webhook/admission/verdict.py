"""The answer to one review before it is put on the wire."""

from dataclasses import dataclass, replace
from typing import Any, Self

from webhook.objects.refusal import Reason
from webhook.policy.assignment.request import Assignment
from webhook.policy.checkpoint.hook_plan import HookPlan
from webhook.policy.quota.charges import Fit


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is done with an object: a patch (RFC 6902 operations), warnings, a refusal, and the assignment behind them.

    `reason` is the refusal's in one word, which says nothing where there is none; `over_quota`: it is the tenant's
    quota that refuses. `undecided`: the refusal is for now, because of something that
    passes. `hook` is what a pod gets for its end, or has got already, and `placement` says how it lies to other pods.
    All of them empty: the object is not ours.
    """

    assignment: Assignment | None = None
    patch: tuple[dict[str, Any], ...] = ()
    warnings: tuple[str, ...] = ()
    refusal: str | None = None
    tenant: str | None = None
    hook: HookPlan | None = None
    placement: str = ""
    over_quota: bool = False
    reason: Reason = Reason.INVALID
    undecided: bool = False

    def fitted(self, fit: Fit) -> Self:
        """With what the tenant's quota says: its refusal, and its warnings after those that are there."""
        told = self.warnings + fit.warnings
        over = fit.refusal is not None
        reason = Reason.OVER_QUOTA if over else self.reason
        return replace(self, refusal=fit.refusal, over_quota=over, reason=reason, warnings=told)

    @property
    def ours(self) -> bool:
        """Whether anything was decided about the object: its tier, or that it is refused."""
        return self.assignment is not None or self.refusal is not None

    @property
    def outcome(self) -> str:
        """One word for logs and metrics."""
        if self.refusal is not None:
            return "undecided" if self.undecided else "denied"
        return "patched" if self.patch else "allowed"
