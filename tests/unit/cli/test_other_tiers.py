"""explain offers a tier only if the tenant's rows could ever hold the workload."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pytest
from msgspec.structs import replace

from tests.builders import TenantBuilder, a_deployment, a_job, a_pod, a_policy, a_tenant
from tests.builders.facts import some_facts
from tests.builders.pods import GPU
from webhook.cli.explain.other_tiers import Situation, offers
from webhook.cli.explain.tier_changes import tier_changes
from webhook.cli.manifests.documents import Document
from webhook.ledger.account import Account, Entry
from webhook.ledger.memory import MemoryLedger
from webhook.objects.group_kind import POD_GROUP
from webhook.policy.decide import decide_pod
from webhook.policy.quota.charges import Charge
from webhook.policy.quota.native_quotas import PRIORITY_CLASS, NativeQuota
from webhook.policy.values.facts import Group
from webhook.policy.values.tenants import Requirement
from webhook.policy.values.tier_policy import TierPolicy
from webhook.policy.workloads.pod_groups import PodsTogether
from webhook.report.explained import ClassShown, Explained, PodsNow

TENANT = a_tenant().allowing(0, tier="gpu-serving").allowing(1, tier="gpu-training").allowing(2, tier="gpu-batch")
POLICY: TierPolicy = a_policy()


def first_change(
    count: int = 1,
    tenant: TenantBuilder = TENANT,
    used: Charge | None = None,
    native: Sequence[NativeQuota] = (),
    group: Group | None = None,
    node: str = "",
    command: str = "",
    **there: Any,
) -> str:
    """Return what would change the tier of so many pods of 2 GPUs, which get gpu-interactive."""
    owner = a_deployment(a_pod().asking(2), replicas=count)
    facts = some_facts(*[owner] * (not there or "may_name" in there), tenant=tenant, policy=POLICY)
    together = PodsTogether(POD_GROUP, group.name, group.pods) if group else None
    facts, pod = (
        replace(facts, group=group, together=together),
        a_pod().asking(2).having("spec.nodeName", node or None).view(),
    )
    decided, document = decide_pod(pod, facts, POLICY), Document("", a_job().json())
    known = Explained(kind="Job", group="batch", namespace="team-alpha", name="train", **there)
    assert decided is not None
    ledger = MemoryLedger()
    if used:
        account = Account(entries=(Entry(uid="other", namespace="team-alpha", state="Used", wants=(used,)),))
        ledger.store.set(facts.tenant, account)
    situation = Situation(ledger, native, known.may_name, together=bool(known.gang or group))
    return next(tier_changes(document, known, decided.assignment, decided, offers(decided, situation), command))


def test_a_tier_whose_row_is_smaller_than_one_pod_is_not_offered() -> None:
    assert first_change().endswith("gpu-tiers.dev/tier=gpu-batch")


def test_a_tier_whose_row_can_never_hold_all_pods_is_not_offered() -> None:
    """A workload whose pods count one by one is refused as a whole if its label names such a tier."""
    said = "gpu-batch of TenantQuota/alpha allows 2 GPUs, but this workload asks for 4 in all."
    assert first_change(2).endswith(said)


def test_a_tier_whose_row_is_full_is_not_offered() -> None:
    rows = a_tenant().allowing(0, tier="gpu-training").allowing(4, tier="gpu-serving").allowing(4, tier="gpu-batch")
    used = Charge(Decimal(3), "gpu-serving")
    assert first_change(tenant=rows, used=used).endswith("gpu-tiers.dev/tier=gpu-batch")
    total = a_tenant().allowing(4)
    assert first_change(tenant=total, used=used) == (
        "No other tier is open to it: in TenantQuota/alpha the total is at 3 of 4 GPUs without this workload, which "
        "asks for 2."
    )


@pytest.mark.parametrize("on_exceed", ["Warn", "Hold"])
def test_a_full_row_closes_no_tier_if_what_exceeds_it_runs_or_waits(on_exceed: str) -> None:
    full = a_tenant(onExceed=on_exceed).allowing(2)
    assert "gpu-tiers.dev/tier=TIER" in first_change(tenant=full, used=Charge(Decimal(3), "gpu-serving"))


def test_a_group_needs_a_row_for_all_of_its_pods() -> None:
    rows = a_tenant().allowing(2, tier="gpu-serving").allowing(8, tier="gpu-batch").allowing(1, tier="gpu-training")
    said = first_change(tenant=rows, group=Group("pg", "gpu-interactive", pods=4))
    assert "gpu-tiers.dev/tier=gpu-batch, and" in said, "no other could hold the group"


@pytest.mark.parametrize("cannot_wait", [{"node": "node-a"}, {"group": Group("pg", "gpu-interactive", pods=2)}])
def test_a_full_tier_is_not_offered_to_pods_that_cannot_be_queued(cannot_wait: dict[str, Any]) -> None:
    """A pod that names its node takes no gate, and a group that no workload makes is admitted as a whole or refused."""
    full = a_tenant(onExceed="Hold").allowing(4)
    used = Charge(Decimal(3), "gpu-serving")
    assert "No other tier is open to it: in TenantQuota/alpha the total is at 3 of 4" in first_change(
        tenant=full, used=used, **cannot_wait
    )


def test_a_tier_that_a_resourcequota_closes_is_not_offered() -> None:
    batch = Requirement(PRIORITY_CLASS, "In", ("gpu-batch",))
    none_left = NativeQuota("nobatch", (batch,), {GPU: Decimal(0)})
    rows = a_tenant().allowing(0, tier="gpu-training").allowing(0, tier="gpu-serving")
    assert first_change(tenant=rows).endswith("gpu-tiers.dev/tier=gpu-batch")
    assert "ResourceQuota/nobatch leaves 0 GPUs of gpu-batch" in first_change(tenant=rows, native=[none_left])


def test_a_tier_that_the_user_may_not_name_is_not_offered() -> None:
    """With tierAccess: RBAC its label would be refused."""
    rows = a_tenant()
    assert first_change(tenant=rows, may_name=("gpu-batch",)).endswith("gpu-tiers.dev/tier=gpu-batch")
    assert first_change(tenant=rows, may_name=()) == (
        "No other tier is open to it: you may not name gpu-training here (tierAccess: RBAC); "
        "you may not name gpu-serving here (tierAccess: RBAC); you may not name gpu-batch here (tierAccess: RBAC)."
    )


def test_the_tier_of_existing_pods_is_told() -> None:
    has = ClassShown("gpu-interactive", 600, "PreemptLowerPriority", "gpu-interactive")
    first = first_change(command="kubectl rollout restart", pods=(PodsNow(1, has),))
    assert first.startswith("kubectl label job/work -n team-alpha")


def test_a_ceiling_that_leaves_no_other_tier_is_named() -> None:
    lowest = a_tenant(allowedTiers=["gpu-interactive"])
    assert (
        first_change(tenant=lowest)
        == "No other tier is open to it: "
        + "; ".join(
            f"allowedTiers of TenantQuota/alpha excludes {each}"
            for each in ("gpu-training", "gpu-serving", "gpu-batch")
        )
        + "."
    )
