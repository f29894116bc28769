"""The base of all reviewers, their verdict, and the recent decisions on pods.

A pod like a recently decided one gets the same decision, without the steps to it. decide_pod is pure: equal values give
an equal decision. So the policy, the facts and the pod are all compared, except for fields that distinguish a pod from
its siblings and that no decision reads. Nothing is outdated, because a changed fact is not equal.
"""

import math
import re
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Self

import msgspec
from msgspec import structs

from webhook.admission.facts import needed_to
from webhook.admission.review import BadReview, Request
from webhook.cluster.cluster import Cluster
from webhook.ledger.protocol import GangBooking, Ledger
from webhook.objects.pods import Named, Pod
from webhook.objects.refusal import AdmissionWarning, Aside, Reason, Refusal
from webhook.objects.view import read
from webhook.policy.assignment.limits import acceptable, allowed_tiers, requires_a_tier
from webhook.policy.assignment.request import Assignment, TierRequest
from webhook.policy.checkpoint.hook_plan import HookPlan
from webhook.policy.checkpoint.listen import INDEX
from webhook.policy.decide import Decision, decide_pod, is_named_by_owner
from webhook.policy.quota.charges import GangDemand, QuotaVerdict, Shortfall
from webhook.policy.values.facts import Facts
from webhook.policy.values.tenants import Tenant
from webhook.policy.values.tier_policy import Mode, TierPolicy
from webhook.policy.values.tiers import Tiers

KUBERNETES_NAME = "system:"
"""The prefix of the user names of service accounts and Kubernetes' own components, which no person's name may have."""

MOST_LOOKUPS = 10
"""The most look-ups for one controller at once."""
MOST_CONTROLLERS = 1024

MOST_REMEMBERED_BYTES = 16_384
"""Bytes of the largest pod whose decision is stored. Most pods have 2 to 10 KB; larger ones would waste memory."""
MOST_MAKERS, MOST_OF_ONE = 64, 4
"""The most workloads whose decisions are stored, and decisions of each: as sent and as patched, for two templates."""

OF_ONE_POD = frozenset({INDEX, "apps.kubernetes.io/pod-index", "statefulset.kubernetes.io/pod-name"})
"""Labels and annotations by which the controllers of Jobs and StatefulSets number their pods."""
_NUMBER = re.compile(r"-\d+(?=-?$)")
"""The number at the end of a name: an Indexed Job generates NAME-INDEX-, a StatefulSet writes NAME-INDEX."""


class _Sibling(msgspec.Struct, frozen=True):
    pod: Pod
    facts: Facts
    decision: Decision


class RecentDecisions:
    """Stores the latest decisions on pods, of a few workloads, under one policy."""

    def __init__(self) -> None:
        self._policy: TierPolicy | None = None
        self._unread = OF_ONE_POD
        """The keys of OF_ONE_POD that no rule of the policy reads."""
        self._by_maker: dict[tuple[str, str], tuple[_Sibling, ...]] = {}

    def get(self, pod: Pod, facts: Facts, policy: TierPolicy) -> Decision | None:
        """Return a recent decision on a like pod, or decide now; None for a pod that isn't ours. Raises Refused."""
        if policy is not self._policy:
            self._policy, self._by_maker = policy, {}
            self._unread = OF_ONE_POD.difference(*(rule.match.labels for rule in policy.rules))

        # 1. Leave out what distinguishes the pod from its siblings, except what a rule or a shard needs.
        metadata, maker = pod.metadata, (facts.namespace.name, pod.metadata.controller_uid)
        number = self._unread - {INDEX} if any(owner.shards for owner in facts.owners) else self._unread
        alike = structs.replace(
            metadata,
            uid="",
            name="" if metadata.generate_name else _NUMBER.sub("", metadata.name),
            generate_name=_NUMBER.sub("", metadata.generate_name),
            labels=_without(number, metadata.labels),
            annotations=_without(number, metadata.annotations),
        )
        without_number = structs.replace(pod, metadata=alike)

        # 2. Find a sibling with the same facts. `holders` is a cache, so it is not compared.
        siblings = self._by_maker.get(maker, ())
        for each in siblings:
            same_facts = structs.replace(facts, holders=each.facts.holders) == each.facts
            if each.pod == without_number and same_facts:
                asked = structs.replace(each.decision.tier_request, pod=pod, facts=facts)
                return structs.replace(each.decision, tier_request=asked)

        # 3. Decide, and replace the oldest stored decision.
        decision = decide_pod(pod, facts, policy)
        if decision is not None:
            self._by_maker.pop(maker, None)
            if len(self._by_maker) >= MOST_MAKERS:
                del self._by_maker[next(iter(self._by_maker))]
            self._by_maker[maker] = (_Sibling(without_number, facts, decision), *siblings[: MOST_OF_ONE - 1])
        return decision


def _without(keys: frozenset[str], written: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in written.items() if key not in keys}


class Verdict(msgspec.Struct, frozen=True):
    """The verdict on an object: a patch (RFC 6902 operations), warnings, a refusal, and the assignment behind them.

    `undecided`: the refusal is temporary. `workload` is its outermost owner, as Deployment/chat, "" if unknown.
    `queued`: some of its pods wait for room. `decision` is the decision on a pod or a PodGroup. Without an assignment
    and a refusal, the object is not ours.
    """

    assignment: Assignment | None = None
    patch: tuple[dict[str, Any], ...] = ()
    warnings: tuple[AdmissionWarning, ...] = ()
    refusal: Refusal | None = None
    tenant: str | None = None
    workload: str = ""
    undecided: bool = False
    queued: bool = False
    decision: Decision | None = None

    def fitted(self, fit: QuotaVerdict) -> Self:
        """Return the verdict with the quota's refusal in place of its own, and with the quota's warnings added."""
        return structs.replace(self, refusal=fit.refusal, warnings=self.warnings + fit.warnings, queued=fit.queued)

    @property
    def hook(self) -> HookPlan | None:
        """Return the hook that a pod gets or has; None for none."""
        return self.decision.hook.plan if self.decision and self.decision.hook else None

    @property
    def placement(self) -> str:
        """Return how a pod is placed relative to other pods."""
        return self.decision.placement.said if self.decision and self.decision.placement else ""

    @property
    def autoscaler(self) -> str:
        """Return what a pod tells autoscalers."""
        return self.decision.autoscaler.said if self.decision else ""

    @property
    def over_quota(self) -> bool:
        """Tell whether the tenant's quota refuses."""
        return self.refusal is not None and self.refusal.reason is Reason.OVER_QUOTA

    @property
    def ours(self) -> bool:
        """Tell whether anything was decided about the object: a tier, or a refusal."""
        return self.assignment is not None or self.refusal is not None

    @property
    def outcome(self) -> str:
        """Return a word for logs and metrics: allowed, patched, denied or undecided."""
        if self.refusal is not None:
            return "undecided" if self.undecided else "denied"
        return "patched" if self.patch else "allowed"


class LookupBudget:
    """Bounds the look-ups for one controller by this process: ten at once, and then one a second."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._spent_until: dict[str, float] = {}

    def take(self, controller: str) -> bool:
        """Tell whether there is a look-up left, and take it."""
        now = self._clock()
        spent = max(self._spent_until.pop(controller, -math.inf), now - MOST_LOOKUPS)
        is_left = spent + 1 <= now
        if len(self._spent_until) >= MOST_CONTROLLERS:
            del self._spent_until[next(iter(self._spent_until))]
        self._spent_until[controller] = spent + is_left
        return is_left


class Reviewer(msgspec.Struct, frozen=True):
    """Judges the reviews of one kind of object at one operation, by the cluster as it is now and the active policy."""

    cluster: Cluster
    ledger: Ledger
    policy: TierPolicy
    recent: RecentDecisions
    budget: LookupBudget

    async def mutate(self, request: Request, mode: Mode) -> Verdict:  # noqa: ARG002 - of those that ask for it
        """Return the verdict with the patch of an object at its CREATE. Raises Refused for a person's mistake.

        Here it raises BadReview, because not every kind of object is patched.
        """
        raise not_ours(request)

    async def validate(self, request: Request, mode: Mode) -> Verdict:  # noqa: ARG002 - of those that ask for it
        """Judge whether an object may be stored as it is, and book its GPUs. Raises Refused for a person's mistake.

        Here it raises BadReview, as `mutate` does.
        """
        raise not_ours(request)

    async def unentitled(
        self, request: Request, named: Iterable[str], facts: Facts, pods: Iterable[TierRequest]
    ) -> Refusal | None:
        """Return the refusal of a user who names one of these tiers and lacks the right to use it.

        It offers the tiers that all of the `pods` may have. None if nobody is refused, or no user is named.
        A controller may use a tier that a workload above names, because the right of its user was checked. Anybody may
        write an owner into a pod, so this holds only for user names that begin with "system:", which no person has.
        """
        user, policy, may_use = request.user_info, self.policy, self.cluster.lookups.may_use
        # A command judges for nobody. The API server always names a user.
        if not user.username:
            return None
        is_controller = user.username.startswith(KUBERNETES_NAME)
        with needed_to("find out who may use a tier"):
            for tier in dict.fromkeys(filter(None, named)):
                passes = is_controller and is_named_by_owner(tier, facts, policy)
                if passes or await may_use(user, tier, request.namespace):
                    continue
                bounds = [acceptable(asked) for asked in pods]
                own = allowed_tiers(facts.tenant, policy) if facts.tenant else policy.tiers
                offered = [each.name for each in own if all(each in bound for bound in bounds)]
                others = [name for name in offered if await may_use(user, name, request.namespace)]
                who = requires_a_tier(facts.namespace, policy)
                none = Aside("may-name-required", who=who) if who else Aside("may-name-none")
                may = Aside("may-name", tiers=tuple(others)) if others else none
                return Refusal(Reason.TIER_ACCESS, "tier-not-for-user", user=user.username, tier=tier, may=may)
        return None

    def in_each_tier(self, short: Shortfall, tenant: Tenant) -> Shortfall:
        """Return the ledger's shortfall with the usage as each tier sees it, if the queue reserves anything."""
        tiers, reserved_for = self.policy.tiers, self.ledger.reserved_for_queue
        if not any(reserved_for(tenant).values()):
            return short
        booked = {row: gpus - short.reserved[row] for row, gpus in short.usage.items()}
        met = ((each.name, reserved_for(tenant, tiers.rank(each.name))) for each in tiers)
        in_tier = {name: {row: gpus + its[row] for row, gpus in booked.items()} for name, its in met}
        return structs.replace(short, in_tier=in_tier)


def not_ours(request: Request) -> BadReview:
    """Return the error for a request that nobody reviews, because the webhook configuration's rules are wrong."""
    name = "/".join(filter(None, (request.kind.group, request.kind.kind, request.sub_resource)))
    return BadReview(
        f"{request.operation[:20]} of {name[:60]} is not reviewed here: this webhook takes pods, PodGroups, Workloads, "
        "ResourceClaims, TenantQuotas, Namespaces and the workloads of its table; correct the rules of the webhook "
        "configuration"
    )


async def with_free_name(verdict: Verdict, request: Request, plural: str, cluster: Cluster) -> Verdict:
    """Refuse a create whose name is taken. A dry run passes, because nothing is booked for it.

    Such a create fails after all webhooks were asked, and its booking would stay until no create can be in flight. The
    booking can't end because the name is taken, as the other object may be deleted before this one is stored. The
    refusal is always right, because the API server would have refused it at that moment too.
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
    """Return the booking of a workload. Without a uid it gets the review's uid, and without a generation 1."""
    metadata = read(request.object, Named).metadata
    kind = request.kind.group_kind.qualified
    uid, generation = metadata.uid or request.uid, metadata.generation or 1
    rank = min((tiers.rank(each.tier) for each in gang.charges), default=0)
    return GangBooking(uid, kind, request.namespace, metadata.name, tenant, gang.charges, generation, rank=rank)
