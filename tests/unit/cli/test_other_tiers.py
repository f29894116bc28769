"""explain offers a tier only if the tenant's rows could ever hold the workload."""

from tests.builders import a_job, a_pod, a_policy, a_tenant
from tests.builders.facts import some_facts
from webhook.admission.reviewer import Verdict
from webhook.cli.explain.explanation import NewPod, tier_changes
from webhook.cli.manifests.documents import Document
from webhook.cli.manifests.finding import Finding
from webhook.ledger.memory import MemoryLedger
from webhook.policy.decide import decide_pod
from webhook.policy.values.tier_policy import TierPolicy
from webhook.report.explained import ClassShown, Explained, GangShown, PodsNow

TENANT = a_tenant().allowing(0, tier="gpu-serving").allowing(1, tier="gpu-training").allowing(2, tier="gpu-batch")
POLICY: TierPolicy = a_policy()


def first_change(count: int = 1, **there: object) -> str:
    """Return what would change the tier of so many pods of 2 GPUs, which get gpu-interactive."""
    pod, facts = a_pod().asking(2).view(), some_facts(tenant=TENANT, policy=POLICY)
    decided, document = decide_pod(pod, facts, POLICY), Document("", a_job().json())
    part = NewPod(Finding(document, Verdict(), document.tree, count=count), pod, facts, decided)
    known = Explained(kind="Job", group="batch", namespace="team-alpha", name="train", **there)  # type: ignore[arg-type]
    assert decided is not None
    return next(tier_changes(document, known, [part], decided.assignment, decided, MemoryLedger()))


def test_a_tier_whose_row_is_smaller_than_one_pod_is_not_offered() -> None:
    assert first_change(4).endswith("gpu-tiers.dev/tier=gpu-batch")


def test_a_gang_needs_a_row_for_all_of_its_pods() -> None:
    none_left = "No other tier is open to it: its tenant's ceiling, its quota or the policy leaves none."
    assert first_change(4, gang=GangShown("Job.batch/train", "8 GPUs as gpu-interactive", 0)) == none_left


def test_the_tier_of_existing_pods_is_told() -> None:
    has = ClassShown("gpu-interactive", 600, "PreemptLowerPriority", "gpu-interactive")
    assert first_change(pods=(PodsNow(1, has),)).startswith("Its pods keep gpu-interactive. Delete job/")
