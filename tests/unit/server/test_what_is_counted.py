"""The counters of a cluster's verdicts: admitted pods, refusals by reason, guesses not used, and GPU-seconds."""

from collections.abc import Mapping
from decimal import Decimal

import pytest
from msgspec.structs import replace

from tests.builders import Built, a_job, a_pod, a_policy, a_tenant
from tests.builders.counted_ledger import CountedLedger
from tests.builders.world import FakeApi
from tests.unit.page.samples import a_preemption
from webhook.controllers.gpu_seconds import GpuSeconds
from webhook.controllers.pods_on_nodes import ObservedPod, PodsOnNodes
from webhook.ledger.protocol import Holding
from webhook.objects.refusal import Reason
from webhook.policy.checkpoint.work_lost import Work
from webhook.policy.quota.charges import Charge
from webhook.policy.values.tenants import Tenant
from webhook.policy.values.tier_policy import Mode, TierPolicy
from webhook.server.background import _count
from webhook.server.metric_table import TABLE
from webhook.server.metrics import Metrics
from webhook.server.record import Recorder


class Counted(FakeApi):
    """A cluster whose verdicts are counted."""

    def __init__(self, *objects: Built, policy: TierPolicy | None = None) -> None:
        super().__init__(*objects, policy=policy)
        self.metrics = Metrics()
        self.webhooks = replace(self.webhooks, record=Recorder(self.metrics))

    def series(self, metric: str) -> Mapping[tuple[str, ...], float]:
        """The values of a counter that are not 0, by labels in the table's order."""
        return shown(self.metrics, metric)


def shown(metrics: Metrics, metric: str) -> Mapping[tuple[str, ...], float]:
    samples = [each for family in metrics.registry.collect() for each in family.samples if each.name == metric]
    return {tuple(each.labels[name] for name in TABLE[metric].labels): each.value for each in samples if each.value}


async def test_pods_admitted_by_what_decided_their_tier() -> None:
    job = a_job(name="train-ranker")
    world = Counted(job)
    await world.create(a_pod("asked").asking().of_tier("gpu-training"))
    await world.create(a_pod("shown").asking().running("torchrun", "train.py").owned_by(job))
    await world.create(a_pod("tried").asking().of_tier("gpu-training"), dryRun=True)
    counted = world.series("gpu_tiers_admissions_total")
    assert counted["gpu-training", "label", "", "Enforce"] == 1, "a dry run lets nothing in"
    assert counted["gpu-training", "workload-type", "shown", "Enforce"] == 1


async def test_in_audit_it_is_the_tier_that_they_would_get() -> None:
    world = Counted(a_tenant(maxTier="gpu-batch"), policy=replace(a_policy(), mode=Mode.Audit))
    await world.validate(a_pod().asking().of_tier("gpu-batch"))
    await world.validate(a_pod("above").asking().of_tier("gpu-training"))
    assert world.series("gpu_tiers_admissions_total") == {("gpu-batch", "label", "", "Audit"): 1}
    assert world.series("gpu_tiers_denials_total") == {("ceiling", "Audit"): 1}


REFUSED = [
    (a_pod().asking().of_tier("gpu-fast"), Reason.UNKNOWN_TIER),
    (a_pod().asking().of_tier("gpu-training"), Reason.CEILING),
    (a_pod().asking().of_tier("gpu-batch").having("spec.priorityClassName", "gpu-interactive"), Reason.CONTRADICTION),
    (a_pod().asking(3).of_tier("gpu-batch"), Reason.OVER_QUOTA),
    (a_pod().asking("many").of_tier("gpu-batch"), Reason.INVALID),
    (a_pod().asking().of_tier("gpu-batch").annotated({"gpu-tiers.dev/checkpoint": "magic"}), Reason.HOOK),
]


@pytest.mark.parametrize(("pod", "reason"), REFUSED, ids=[str(reason) for _, reason in REFUSED])
async def test_a_refusal_is_counted_by_its_reason(pod: Built, reason: Reason) -> None:
    world = Counted(a_tenant(maxTier="gpu-batch").allowing(2))
    assert not (await world.create(pod)).allowed
    assert world.series("gpu_tiers_denials_total") == {(reason, "Enforce"): 1}


@pytest.mark.parametrize("mode", Mode)
async def test_a_dry_run_refuses_nothing(mode: Mode) -> None:
    world = Counted(a_tenant(maxTier="gpu-batch"), policy=replace(a_policy(), mode=mode))
    await world.validate(a_pod().asking().of_tier("gpu-training"), dryRun=True)
    assert [
        world.series(each)
        for each in ("gpu_tiers_denials_total", "gpu_tiers_refusals_total", "gpu_tiers_would_refuse_total")
    ] == [{}, {}, {}]
    assert sum(world.series("gpu_tiers_reviews_total").values()) == 1, "it is a review"


async def test_a_guess_that_was_not_used() -> None:
    world = Counted()
    await world.create(a_pod("training-run").asking().running("python3", "main.py"))
    assert sum(world.series("gpu_tiers_weak_guesses_total").values()) == 1


def test_what_an_alert_waits_for_begins_at_0() -> None:
    registry = Metrics().registry
    assert registry.get_sample_value("gpu_tiers_policy_reloads_total", {"result": "failure"}) == 0
    assert registry.get_sample_value("gpu_tiers_denials_total", {"reason": "over-quota", "mode": "Enforce"}) == 0


class Nodes:
    """A tenant's pods on nodes, and the time."""

    def __init__(self) -> None:
        self.now = 0.0
        self.names = ["alpha"]
        self.metrics = Metrics()
        ledger = CountedLedger(lambda: self.now, self.tenant_name)
        self.pods = PodsOnNodes(ledger, {"node-1": "h100"}.get)
        self.seconds = GpuSeconds(
            lambda seconds, series: self.metrics.add("gpu_tiers_gpu_seconds_total", seconds, *series),
            self.metrics.forget_tenants,
            self.pods.running,
            self,
            lambda: self.now,
        )

    def tenants(self) -> list[Tenant]:
        return [Tenant(name) for name in self.names]

    def tenant_name(self, namespace: str) -> str | None:
        return "alpha" if namespace == "team-alpha" else None

    def after(self, seconds: float) -> Mapping[tuple[str, ...], float]:
        self.now += seconds
        self.seconds.count()
        return shown(self.metrics, "gpu_tiers_gpu_seconds_total")


def observed(node: str, gpus: int = 2, namespace: str = "team-alpha", **shared: Decimal) -> ObservedPod:
    holding = Holding(namespace, Charge(Decimal(gpus), "gpu-batch", None, shared))
    return ObservedPod(namespace, "", holding=holding, node=node)


def test_gpu_seconds_run_while_a_pod_is_on_a_node() -> None:
    nodes = Nodes()
    nodes.pods.pods_listed(
        {"runs": observed("node-1"), "waits": observed(""), "nobodys": observed("node-2", namespace="lab")}
    )
    assert nodes.after(10) == {("alpha", "gpu-batch", "h100"): 20, ("", "gpu-batch", ""): 20}
    nodes.pods.pod_changed("runs", None)
    assert nodes.after(10) == {("alpha", "gpu-batch", "h100"): 20, ("", "gpu-batch", ""): 40}


def test_a_claim_that_pods_share_counts_once() -> None:
    nodes = Nodes()
    nodes.pods.pods_listed({"one": observed("node-1", ours=Decimal(2)), "two": observed("node-1", ours=Decimal(2))})
    assert nodes.after(10) == {("alpha", "gpu-batch", "h100"): 20}


def test_a_tenant_that_is_gone_has_no_series() -> None:
    nodes = Nodes()
    for tenant in ("alpha", ""):
        nodes.metrics.count("gpu_tiers_refusals_total", "gpu-batch", tenant)
    nodes.pods.pods_listed({"runs": observed("node-1")})
    nodes.after(10)
    nodes.names.clear()
    nodes.pods.pods_listed({})
    assert nodes.after(10) == {}
    (refusals,) = (
        each for each in nodes.metrics.registry.collect() if f"{each.name}_total" == "gpu_tiers_refusals_total"
    )
    assert [sample.labels["tenant"] for sample in refusals.samples] == [""]


def test_a_process_that_stood_still_does_not_count_that_time() -> None:
    nodes = Nodes()
    nodes.pods.pods_listed({"runs": observed("node-1")})
    assert nodes.after(3600) == {("alpha", "gpu-batch", "h100"): 40}


def test_what_preemptions_lose_by_tier_of_victim_and_preemptor_and_whether_it_is_known_exactly() -> None:
    metrics = Metrics()
    for each in (a_preemption(), a_preemption(), a_preemption("no-hook", lost=Work(3600, exact=False))):
        _count(metrics, each)
    _count(metrics, a_preemption("unknown", lost=None))
    who = ("gpu-batch", "gpu-training", "beta")
    assert shown(metrics, "gpu_tiers_lost_gpu_seconds_total") == {
        (*who, "saved", "true", ""): 48,
        (*who, "no-hook", "false", ""): 3600,
    }
    assert shown(metrics, "gpu_tiers_preemptions_total") == {
        (*who, "saved"): 2,
        (*who, "no-hook"): 1,
        (*who, "unknown"): 1,
    }
