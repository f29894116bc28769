"""The order of priorities: the mistakes that are found."""

from decimal import Decimal

import msgspec
from msgspec.structs import replace

from tests.builders import a_job, a_pod, a_policy
from tests.unit.report.lint.asking import FILE, PUBLISHED, a_cluster, a_listed_pod, found, running
from webhook.cli.cluster.snapshot import _gang
from webhook.cli.manifests.inputs import cluster_of
from webhook.config.published import InstalledPolicy
from webhook.objects.group_kind import GroupKind
from webhook.policy.assignment.request import TIER_LABEL
from webhook.policy.quota.charges import Charge
from webhook.policy.values.gpu_supply import GpuSupply, NodeSupply
from webhook.policy.values.tiers import PriorityClass
from webhook.policy.values.weights import DeviceClass
from webhook.report.lint import RULES
from webhook.report.lint.rule import lint_report
from webhook.report.lint.snapshot import ClusterSnapshot, GangSeen

TUNE = GangSeen("uid-of-tune", "PyTorchJob", "team-alpha", "tune", (Charge(Decimal(4), "gpu-interactive"),))


def with_classes(*others: PriorityClass) -> ClusterSnapshot:
    cluster = a_cluster()
    return a_cluster(classes={**cluster.classes, **{each.name: each for each in others}})


def test_serving_below_training_is_what_the_four_tier_preset_does() -> None:
    assert found("serving-below-others", a_cluster()) == [
        "tier gpu-serving: serving gets it; training (gpu-training) ranks above it, and evicts serving"
    ]
    for preset in ("three-tier", "inference-first"):
        assert found("serving-below-others", a_cluster(a_policy(preset))) == []


def test_training_in_a_tier_that_evicts_nobody() -> None:
    types = {"training": "gpu-interactive", "serving": "gpu-serving", "batch": "gpu-batch"}
    assert found("never-for-training", a_cluster(a_policy(workloadTypes=types))) == [
        "tier gpu-interactive: training gets it, and its preemptionPolicy is Never"
    ]
    assert found("never-for-training", a_cluster()) == []


def test_a_gang_in_a_tier_that_evicts_nobody() -> None:
    assert found("never-holds-gangs", a_cluster(gangs=(TUNE,))) == [
        "tier gpu-interactive: evicts nobody, and holds 1 gang: PyTorchJob/tune in team-alpha"
    ]


def test_a_gang_that_is_scheduled_whole_may_wait_there() -> None:
    pods = (a_listed_pod(gang="uid-of-tune", group="tune"),)
    assert found("never-holds-gangs", a_cluster(gangs=(TUNE,), pods=pods)) == []


async def test_shards_are_booked_whole_and_wait_for_no_other() -> None:
    """Each pod of an Indexed Job with more completions than run at once works by itself; without that they are one."""

    async def sentences(**spec: object) -> list[str]:
        job = a_job(a_pod().asking().labelled({TIER_LABEL: "gpu-interactive"}), "embed", parallelism=3, **spec)
        policy, raw = a_policy(), msgspec.Raw(msgspec.json.encode(job.json()))
        gang = await _gang(raw, policy.kinds.by_kind[GroupKind("batch", "Job")], cluster_of(policy, []), policy)
        assert gang is not None
        assert sum(each.gpus for each in gang.charges) == 3
        return found("never-holds-gangs", a_cluster(gangs=(gang,)))

    assert await sentences(completionMode="Indexed", completions=12) == []
    assert await sentences(completionMode="Indexed", completions=3) == [
        "tier gpu-interactive: evicts nobody, and holds 1 gang: Job/embed in team-alpha"
    ]


def test_a_class_of_somebody_else_above_tiers() -> None:
    cluster = with_classes(PriorityClass("urgent", 500), PriorityClass("calm", 900, "Never"), PriorityClass("low", -5))
    assert found("class-above-tiers", cluster) == ["PriorityClass/urgent: value 500 evicts gpu-batch, gpu-interactive"]
    assert found("class-above-tiers", a_cluster()) == [], "Kubernetes' own two are meant to"


def test_the_class_of_a_tier_that_is_gone_is_to_be_deleted_and_is_nobody_elses() -> None:
    cluster = replace(with_classes(PriorityClass("gold", 900, ours=True)), pods=(a_listed_pod(class_name="gold"),))
    (sentences,) = found("class-of-former-tier", cluster)
    assert sentences == (
        "PriorityClass/gold: value 900, of a tier that the policy has dropped: evicts gpu-serving, gpu-batch, "
        "gpu-interactive; 1 pod with GPUs bears it"
    )
    assert found("class-above-tiers", cluster) == [], "told once"


def test_the_class_of_a_tier_that_is_gone_is_not_said_to_evict_where_it_does_not() -> None:
    spare = PriorityClass("acme-spare", 900, "Never", ours=True)
    low = PriorityClass("acme-low", 5, ours=True)
    report = lint_report(with_classes(spare, low), RULES)
    (first, second) = [each for each in report.findings if each.id == "class-of-former-tier"]
    assert first.what == "value 5, of a tier that the policy has dropped: evicts no tier"
    assert second.what == "value 900, of a tier that the policy has dropped: evicts no tier"
    assert "evict" not in first.fix, "each finding says it of its own class"


def test_the_classes_of_a_policy_that_is_just_arriving_are_of_no_former_tier() -> None:
    """Helm has made them, and the kubelet has not brought the file yet: to delete them would have the tier refused."""
    cluster = with_classes(PriorityClass("acme-prod", 9000, ours=True))
    arriving = running(installed=InstalledPolicy("gpu-tiers/gpu-tiers", FILE + "\nmode: Enforce", PUBLISHED))
    assert found("class-of-former-tier", replace(cluster, **arriving)) == []
    broken = running(installed=InstalledPolicy("gpu-tiers/gpu-tiers", FILE, replace(PUBLISHED, problem="mode: no")))
    assert found("class-of-former-tier", replace(cluster, **broken)) == [], "the file may have it"
    assert len(found("class-of-former-tier", cluster)) == 1, "the file is active"


def test_a_default_class_above_tiers_is_that_of_all_pods() -> None:
    cluster = with_classes(PriorityClass("house", 500, global_default=True))
    assert found("default-class-above-tiers", cluster) == [
        "PriorityClass/house: value 500 is the default of all pods, and evicts gpu-batch, gpu-interactive"
    ]
    assert found("class-above-tiers", cluster) == [], "told once"
    assert found("default-class-above-tiers", with_classes(PriorityClass("house", 0, global_default=True))) == []


def test_a_tier_whose_class_is_missing_or_another() -> None:
    cluster = a_cluster()
    classes = {name: live for name, live in cluster.classes.items() if name != "gpu-serving"}
    lacking = a_cluster(classes=classes | {"gpu-batch": PriorityClass("gpu-batch", 7)})
    assert found("tier-class-missing", lacking) == [
        "PriorityClass/gpu-serving: does not exist, so pods of tier gpu-serving are refused"
    ]
    (line,) = found("tier-class-differs", lacking)
    assert line.startswith("tiers.gpu-batch.value: 400, but PriorityClass/gpu-batch exists with 7;")
    assert found("tier-class-missing", cluster) == found("tier-class-differs", cluster) == []


def test_tiers_that_count_on_eviction_where_gpus_come_by_dra() -> None:
    gpus = DeviceClass("gpu.nvidia.com", ("device.driver == 'gpu.nvidia.com'",), "nvidia.com/gpu")
    supply = GpuSupply((NodeSupply("d1", drivers=frozenset({"gpu.nvidia.com"})),), (1, 37))
    policy = replace(a_policy(), classes={gpus.name: gpus})
    (sentences,) = found("tiers-without-eviction", a_cluster(policy, supply=supply))
    assert sentences == (
        "DeviceClass/gpu.nvidia.com: no tier evicts anybody for devices of gpu.nvidia.com and nvidia.com/gpu on node "
        "d1: these come by DRA; gpu-training, gpu-serving, gpu-batch count on eviction"
    )
    calm = replace(a_policy(adoption=True), classes={gpus.name: gpus})
    assert found("tiers-without-eviction", a_cluster(calm, supply=supply)) == [], "during adoption none does"
