"""What judges the reviews of one kind of object, at one operation, and the verdict that it gives."""

from typing import Any, Self

import msgspec
from msgspec import structs

from webhook.admission.recent_decisions import RecentDecisions
from webhook.admission.review import BadReview, Request
from webhook.cluster.cluster import Cluster
from webhook.ledger.protocol import GangBooking, Ledger
from webhook.objects.group_kind import GroupKind
from webhook.objects.phrase import AdmissionWarning
from webhook.objects.pods import Named
from webhook.objects.refusal import Reason, Refusal
from webhook.objects.view import read
from webhook.policy.assignment.request import Assignment
from webhook.policy.checkpoint.hook_plan import HookPlan
from webhook.policy.quota.charges import Fit, GangDemand, Shortfall
from webhook.policy.values.tenants import Tenant
from webhook.policy.values.tier_policy import Mode, TierPolicy
from webhook.policy.values.tiers import Tiers


class Verdict(msgspec.Struct, frozen=True):
    """What is done with an object: a patch (RFC 6902 operations), warnings, a refusal, and the assignment behind them.

    `undecided`: the refusal is for now, because of something that passes. `hook` is what a pod gets for its end, or has
    got already, and `placement` says how it lies to other pods. `workload` is the outermost one that makes it, as
    Deployment/chat; "" where nothing is known to. All of them empty: the object is not ours.
    """

    assignment: Assignment | None = None
    patch: tuple[dict[str, Any], ...] = ()
    warnings: tuple[AdmissionWarning, ...] = ()
    refusal: Refusal | None = None
    tenant: str | None = None
    hook: HookPlan | None = None
    placement: str = ""
    workload: str = ""
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


class Reviewer(msgspec.Struct, frozen=True):
    """Holds what one review is judged by: the cluster as it is now, the ledger, the policy in force, and what was
    decided of the pods before.
    """

    cluster: Cluster
    ledger: Ledger
    policy: TierPolicy
    recent: RecentDecisions

    async def mutate(self, request: Request, mode: Mode) -> Verdict:  # noqa: ARG002 - of those that ask for it
        """What is written on an object at its CREATE. Raises Refused for a person's mistake."""
        raise not_ours(request)

    async def validate(self, request: Request, mode: Mode) -> Verdict:  # noqa: ARG002 - of those that ask for it
        """Whether an object may be stored as it is, and what is booked for it. Raises Refused likewise."""
        raise not_ours(request)

    def with_reserved(self, short: Shortfall, tenant: Tenant) -> Shortfall:
        """The shortfall, which says what of the usage is reserved for the queue."""
        return structs.replace(
            short, reserved=self.ledger.reserved_for_queue(tenant, self.policy.tiers.rank(short.charge.tier))
        )


def not_ours(request: Request) -> BadReview:
    """What is said of a request that nobody reviews: the rules of the webhook configuration are wrong."""
    name = "/".join(filter(None, (request.kind.group, request.kind.kind, request.sub_resource)))
    return BadReview(
        f"{request.operation[:20]} of {name[:60]} is not reviewed here: this webhook takes pods, PodGroups, Workloads, "
        "ResourceClaims, TenantQuotas, Namespaces and the workloads of its table; correct the rules of the webhook "
        "configuration"
    )


async def with_free_name(verdict: Verdict, request: Request, plural: str, cluster: Cluster) -> Verdict:
    """The verdict on a create, refused where an object of its name is stored. For a dry run nothing is booked.

    Such a create fails after all webhooks were asked, and a booking for it would stay until no create can be under way
    any more. That another object bears the name proves nothing then, for that may be deleted before this one is stored.
    A no is always right: when we looked, the API server would have said the same.
    """
    kind, name = request.kind, request.name
    if request.operation != "CREATE" or request.dry_run or not name or verdict.refusal:
        return verdict
    api_version = f"{kind.group}/{kind.version}" if kind.group else kind.version
    if not await cluster.lookups.is_name_taken(api_version, plural, request.namespace, name):
        return verdict
    resource = f"{plural}.{kind.group}" if kind.group else plural
    refusal = Refusal(Reason.NAME_TAKEN, "name-taken", resource=resource, name=name)
    return structs.replace(verdict, refusal=refusal)


def gang_booking(request: Request, gang: GangDemand, tenant: Tenant, tiers: Tiers) -> GangBooking:
    """What is booked for a workload. A new one may have no uid yet but its review's, and is generation 1."""
    metadata = read(request.object, Named).metadata
    kind = GroupKind(request.kind.group, request.kind.kind).qualified
    uid, generation = metadata.uid or request.uid, metadata.generation or 1
    rank = min((tiers.rank(each.tier) for each in gang.charges), default=0)
    return GangBooking(uid, kind, request.namespace, metadata.name, tenant, gang.charges, generation, rank=rank)
