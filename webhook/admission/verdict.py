"""The answer to one review before it is put on the wire."""

from typing import Any, Self

import msgspec
from msgspec import structs

from webhook.objects.phrase import AdmissionWarning
from webhook.objects.refusal import Reason, Refusal
from webhook.policy.assignment.request import Assignment
from webhook.policy.checkpoint.hook_plan import HookPlan
from webhook.policy.quota.charges import Fit


class Verdict(msgspec.Struct, frozen=True):
    """What is done with an object: a patch (RFC 6902 operations), warnings, a refusal, and the assignment behind them.

    `undecided`: the refusal is for now, because of something that passes. `hook` is what a pod gets for its end, or has
    got already, and `placement` says how it lies to other pods. All of them empty: the object is not ours.
    """

    assignment: Assignment | None = None
    patch: tuple[dict[str, Any], ...] = ()
    warnings: tuple[AdmissionWarning, ...] = ()
    refusal: Refusal | None = None
    tenant: str | None = None
    hook: HookPlan | None = None
    placement: str = ""
    undecided: bool = False

    def fitted(self, fit: Fit) -> Self:
        """With what the tenant's quota says: its refusal, and its warnings after those that are there."""
        return structs.replace(self, refusal=fit.refusal, warnings=self.warnings + fit.warnings)

    @property
    def over_quota(self) -> bool:
        """Whether it is the tenant's quota that refuses."""
        return self.refusal is not None and self.refusal.reason is Reason.OVER_QUOTA

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
