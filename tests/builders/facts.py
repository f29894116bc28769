"""Facts of a cluster about a pod and the decisions that follow: the calls of most tests of decisions."""

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import structs

from tests.builders.pods import PodBuilder
from tests.builders.policies import a_policy
from tests.builders.tenants import TenantBuilder
from tests.builders.workloads import WorkloadBuilder
from webhook.policy import decide
from webhook.policy.assignment.request import Assignment, TierRequest, tier_request
from webhook.policy.checkpoint.hook_plan import HookDecision, plan_hook
from webhook.policy.classification.classify import classify, classify_workload
from webhook.policy.classification.evidence import Evidence
from webhook.policy.quota.demand import demand_of
from webhook.policy.values.facts import Facts, Group, Namespace
from webhook.policy.values.tier_policy import TierPolicy
from webhook.policy.values.tiers import PriorityClass, active_class, classes_of
from webhook.policy.workloads.kind_table import WorkloadType
from webhook.policy.workloads.workload import Devices

HOUSE_CLASS = PriorityClass("house", 900)
SYSTEM_CLASS = PriorityClass("system-node-critical", 2_000_001_000)


def live_classes(policy: TierPolicy, *others: PriorityClass) -> dict[str, PriorityClass]:
    """Return the classes of the tiers as a cluster has them, with HOUSE_CLASS, SYSTEM_CLASS and `others`, by name."""
    own = [live for tier in policy.tiers for live in classes_of(tier)]
    return {live.name: live for live in (*own, HOUSE_CLASS, SYSTEM_CLASS, *others)}


def some_facts(
    *owners: WorkloadBuilder,
    policy: TierPolicy | None = None,
    tenant: TenantBuilder | None = None,
    group: str | None = None,
    labels: Mapping[str, str] | None = None,
    classes: Iterable[PriorityClass] = (),
) -> Facts:
    """Return facts of a cluster: owners (the nearest first), the tenant, the tier of the group, namespace labels."""
    policy = policy or a_policy()
    tier = policy.tiers.get(group or "")
    name = active_class(tier, adoption=policy.adoption) if tier else group or ""
    return Facts(
        namespace=Namespace("team-alpha", labels or {}),
        classes=live_classes(policy, *classes),
        owners=tuple(owner.view() for owner in owners),
        tenant=tenant.view() if tenant else None,
        group=Group("gang", name) if group is not None else None,
    )


def a_tier_request(
    pod: PodBuilder, *owners: WorkloadBuilder, policy: TierPolicy | None = None, **facts: Any
) -> TierRequest:
    """Return the request of a pod under those facts."""
    policy = policy or a_policy()
    seen = pod.view()
    holds = demand_of(seen, (), policy) > 0
    known = some_facts(*owners, policy=policy, **facts)
    return tier_request(seen, known, policy, classify(seen, known.owners, policy.kinds), holds_gpus=holds)


def assigned(pod: PodBuilder, *owners: WorkloadBuilder, **facts: Any) -> Assignment:
    """The tier that a pod gets under those facts, or Refused."""
    return decide.assignment_of(a_tier_request(pod, *owners, **facts))


def hook_decided(
    pod: PodBuilder,
    type_: WorkloadType | None,
    *owners: WorkloadBuilder,
    tier: str | None = None,
    devices: Iterable[Devices] = (),
    **checkpoint: Any,
) -> HookDecision:
    """Return the decision on the hook of a pod of a type under a policy's checkpoint section, or Refused."""
    policy = a_policy(checkpoint=checkpoint) if checkpoint else a_policy()
    known = structs.replace(some_facts(*owners, policy=policy), devices=tuple(devices))
    return plan_hook(pod.view(), type_, known, policy, tier)


def type_of(workload: WorkloadBuilder) -> Evidence | None:
    """Return the type of a whole workload."""
    return classify_workload(workload.view(), a_policy())
