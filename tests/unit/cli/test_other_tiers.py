"""explain offers a tier only if the tenant's rows could ever hold the workload."""

from decimal import Decimal

import pytest

from tests.builders import TenantBuilder, a_deployment, a_job, a_pod, a_policy, a_tenant
from tests.builders.facts import some_facts
from webhook.admission.reviewer import Verdict
from webhook.cli.explain.explanation import NewPod
from webhook.cli.explain.tier_changes import tier_changes
from webhook.cli.manifests.documents import Document
from webhook.cli.manifests.finding import Finding
from webhook.ledger.account import Account, Entry
from webhook.ledger.memory import MemoryLedger
from webhook.policy.decide import decide_pod
from webhook.policy.quota.charges import Charge
from webhook.policy.values.tier_policy import TierPolicy
from webhook.report.explained import ClassShown, Explained, GangShown, PodsNow

TENANT = a_tenant().allowing(0, tier="gpu-serving").allowing(1, tier="gpu-training").allowing(2, tier="gpu-batch")
POLICY: TierPolicy = a_policy()


def first_change(count: int = 1, tenant: TenantBuilder = TENANT, used: Charge | None = None, **there: object) -> str:
    """Return what would change the tier of so many pods of 2 GPUs, which get gpu-interactive."""
    owner = a_deployment(a_pod().asking(2), replicas=count)
    pod, facts = a_pod().asking(2).view(), some_facts(*[owner] * (not there), tenant=tenant, policy=POLICY)
    decided, document = decide_pod(pod, facts, POLICY), Document("", a_job().json())
    part = NewPod(Finding(document, Verdict(), document.tree, count=count), pod, facts, decided)
    known = Explained(kind="Job", group="batch", namespace="team-alpha", name="train", **there)  # type: ignore[arg-type]
    assert decided is not None
    ledger = MemoryLedger()
    if used:
        account = Account(entries=(Entry(uid="other", namespace="team-alpha", state="Used", wants=(used,)),))
        ledger.store.set(facts.tenant, account)
    return next(tier_changes(document, known, part.weight, decided.assignment, decided, ledger, deletable=True))


def test_a_tier_whose_row_is_smaller_than_one_pod_is_not_offered() -> None:
    assert first_change().endswith("gpu-tiers.dev/tier=gpu-batch")


def test_a_tier_whose_row_can_never_hold_all_pods_is_not_offered() -> None:
    """A workload whose pods count one by one is refused as a whole if its label names such a tier."""
    assert first_change(2).endswith("gpu-batch of TenantQuota/alpha allows 2 GPUs, and all of its pods ask for 4.")


def test_a_tier_whose_row_is_full_is_not_offered() -> None:
    rows = a_tenant().allowing(0, tier="gpu-training").allowing(4, tier="gpu-serving").allowing(4, tier="gpu-batch")
    used = Charge(Decimal(3), "gpu-serving")
    assert first_change(tenant=rows, used=used).endswith("gpu-tiers.dev/tier=gpu-batch")
    total = a_tenant().allowing(4)
    assert first_change(tenant=total, used=used) == (
        "No other tier is open to it: the total is at 3 of 4 GPUs of TenantQuota/alpha without it, and it asks for 2."
    )
    itself = Charge(Decimal(3), "gpu-interactive")
    has = ClassShown("gpu-interactive", 600, "PreemptLowerPriority", "gpu-interactive")
    assert "gpu-tiers.dev/tier=TIER" in first_change(tenant=total, used=itself, pods=(PodsNow(1, has),))


@pytest.mark.parametrize("on_exceed", ["Warn", "Hold"])
def test_a_full_row_closes_no_tier_if_what_exceeds_it_runs_or_waits(on_exceed: str) -> None:
    full = a_tenant(onExceed=on_exceed).allowing(2)
    assert "gpu-tiers.dev/tier=TIER" in first_change(tenant=full, used=Charge(Decimal(3), "gpu-serving"))


def test_a_gang_needs_a_row_for_all_of_its_pods() -> None:
    rows = (
        f"{tier} is at 0 of {gpus} GPU{'s' * (gpus != 1)} of TenantQuota/alpha without it, and it asks for 8"
        for gpus, tier in ((1, "gpu-training"), (0, "gpu-serving"), (2, "gpu-batch"))
    )
    none_left = f"No other tier is open to it: {'; '.join(rows)}."
    assert first_change(4, gang=GangShown("Job.batch/train", "8 GPUs as gpu-interactive", 0)) == none_left


def test_a_tier_that_the_user_may_not_name_is_not_offered() -> None:
    """With tierAccess: RBAC its label would be refused."""
    rows = a_tenant()
    assert first_change(tenant=rows, may_name=("gpu-batch",)).endswith("gpu-tiers.dev/tier=gpu-batch")
    assert first_change(tenant=rows, may_name=()) == (
        "No other tier is open to it: you may not name gpu-training, gpu-serving, gpu-batch here (tierAccess: RBAC)."
    )


def test_the_tier_of_existing_pods_is_told() -> None:
    has = ClassShown("gpu-interactive", 600, "PreemptLowerPriority", "gpu-interactive")
    assert first_change(pods=(PodsNow(1, has),)).startswith("kubectl label job/work -n team-alpha")


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
