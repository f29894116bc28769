"""Posture: the tiers that can evict a new tenant's pods, and those that it can evict."""

from msgspec import structs

from tests.builders import a_tenant
from webhook.cli.posture import posture_answer
from webhook.config.load import parse
from webhook.page.posture_picture import posture_file
from webhook.policy.values.gpu_supply import GpuSupply, NodeSupply
from webhook.policy.values.tier_policy import TierPolicy
from webhook.policy.values.tiers import PriorityClass
from webhook.policy.values.weights import DeviceClass
from webhook.report.posture import TierPosture, posture_of


def policy(**fields: str) -> TierPolicy:
    lines = {"apiVersion": "config.gpu-tiers.dev/v1alpha1", "kind": "TierPolicy", "preset": "four-tier", **fields}
    return parse("\n".join(f"{name}: {value}" for name, value in lines.items()))


def tiers_of(policy: TierPolicy, classes: dict[str, PriorityClass] | None = None) -> dict[str, TierPosture]:
    return {each.name: each for each in posture_of(policy, classes=classes).tiers}


def test_each_tier_evicts_those_below_it_and_an_interactive_one_nobody() -> None:
    tiers = tiers_of(policy())
    assert tiers["gpu-serving"].evicts == ("gpu-batch", "gpu-interactive")
    assert tiers["gpu-serving"].evicted_by == ("gpu-training",)
    assert tiers["gpu-interactive"].evicts == ()
    assert tiers["gpu-interactive"].evicted_by == ("gpu-training", "gpu-serving", "gpu-batch")
    assert tiers["gpu-interactive"].workloads == ("interactive", "any other")
    assert tiers["gpu-training"].hooks == ("training: file, 120 s",)


def test_training_saves_in_whatever_tier_it_runs_and_a_sleep_saves_nothing() -> None:
    """A label, a demotion or a ceiling takes training to another tier, and its hook goes with it."""
    checkpoint = "{training: {kind: file, seconds: 180}, serving: {kind: sleep, seconds: 20}}"
    assert {each.hooks for each in tiers_of(policy(checkpoint=checkpoint)).values()} == {("training: file, 180 s",)}
    by_tier = "{training: {kind: file}, tiers: {gpu-batch: {kind: sleep}, gpu-serving: {kind: http, port: 80}}}"
    tiers = tiers_of(policy(checkpoint=by_tier))
    assert (tiers["gpu-batch"].hooks, tiers["gpu-serving"].hooks) == ((), ("every type: http, 120 s",)), (
        "by tier goes before by type"
    )


def test_the_pods_of_a_tier_that_have_to_go_soon_save_in_less_time() -> None:
    """180 s are asked for; the hook, the grace period and what people are told have 50 in the batch tier."""
    tiers = tiers_of(policy(checkpoint="{training: {kind: file, seconds: 180}, " + GO_SOON))
    assert tiers["gpu-batch"].hooks == ("training: file, 50 s",)
    assert tiers["gpu-training"].hooks == ("training: file, 180 s",)


GO_SOON = "maxGracePeriodSecondsByTier: {gpu-batch: 60}}"


def test_where_no_tier_evicts_or_is_evicted_it_is_not_said_that_nobody_does() -> None:
    """system-node-critical evicts the highest tier, and the lowest one that preempts evicts pods without a tier."""
    alone = policy(
        preset='""', tiers="[{name: only, value: 200}]", defaultTier="only", resources="[{name: nvidia.com/gpu}]"
    )
    four, own = ({row[0]: row for row in posture_answer(posture_of(each)).tables[0].rows} for each in (policy(), alone))
    assert (four["gpu-training"][3], four["gpu-interactive"][2]) == ("no tier", "nobody")
    assert own["only"][2] == "no tier"


def test_during_adoption_nobody_evicts_anybody() -> None:
    assert all(not each.evicts and not each.evicted_by for each in tiers_of(policy(adoption="true")).values())


def test_a_tier_whose_class_was_changed_or_is_gone_is_shown_as_refused_without_a_value() -> None:
    """The webhook refuses to give it, so no new pod gets what it says, nor what the policy says."""
    changed = {"gpu-batch": PriorityClass("gpu-batch", 5000), "gpu-serving": PriorityClass("gpu-serving", 800)}
    found = posture_of(policy(), classes=changed)
    tiers = {each.name: each for each in found.tiers}
    assert tiers["gpu-serving"].refused == ""
    assert tiers["gpu-batch"].refused.startswith("PriorityClass/gpu-batch has value 5000, but the policy says 400")
    assert tiers["gpu-training"].refused.startswith("PriorityClass/gpu-training of tier gpu-training does not exist")
    shown = posture_answer(found)
    values = {row[0]: row[1] for row in shown.tables[0].rows}
    refused = "refused, see below"
    assert values == dict.fromkeys(tiers, refused) | {"gpu-serving": "800"}, "one of them has a class, of 5000"
    assert f"Tier gpu-batch: its pods are refused: {tiers['gpu-batch'].refused}" in shown.notes


def test_other_classes_are_shown_if_their_pods_evict_a_tiers() -> None:
    classes = [
        PriorityClass("system-node-critical", 2_000_001_000),
        PriorityClass("team-urgent", 500),
        PriorityClass("calm", 5000, "Never"),
        PriorityClass("low", 100),
        PriorityClass("gpu-training", 1000),
        PriorityClass("gpu-training-nonpreempting", 1000, "Never"),
    ]
    found = posture_of(policy(), classes={each.name: each for each in classes}).classes
    assert [(each.name, each.evicts) for each in found] == [
        ("system-node-critical", ("gpu-training", "gpu-serving", "gpu-batch", "gpu-interactive")),
        ("team-urgent", ("gpu-batch", "gpu-interactive")),
    ]


def test_a_tenant_reads_what_it_may_use_and_what_comes_beyond() -> None:
    tenant = a_tenant(maxTier="gpu-serving").allowing("6", tier="gpu-training").allowing("16").view()
    free = a_tenant("free").view()
    (shown, other) = sorted(posture_of(policy(), [free, tenant]).tenants, key=lambda each: each.name == "free")
    assert (shown.ceiling, shown.quotas) == (
        "gpu-serving, gpu-batch, gpu-interactive",
        ("gpu-training: 6", "the total: 16"),
    )
    assert (shown.on_exceed, other.ceiling, other.quotas) == ("Deny", "any tier", ())


def test_a_row_that_holds_alone_says_so() -> None:
    holds = a_tenant(quotas=[{"tier": "gpu-batch", "gpus": 2, "onExceed": "Hold"}]).allowing("6").view()
    (shown,) = posture_of(policy(), [holds]).tenants
    assert (shown.quotas, shown.on_exceed) == (("gpu-batch: 2", "the total: 6"), "Deny, for gpu-batch Hold")


def test_a_tenant_that_names_a_tier_which_is_gone_is_marked() -> None:
    """The policy has dropped gpu-gold since, and the TenantQuota still names it in two fields."""
    tenant = a_tenant("vision", allowedTiers=["gpu-gold"], defaultTier="gpu-gold").view()
    answer = posture_answer(posture_of(policy(), [tenant, a_tenant("search", defaultTier="gpu-batch").view()]))
    rows = {row[0]: row[1:3] for row in answer.tables[-1].rows}
    assert rows == {"vision": ("no tier", "gpu-gold (no tier)"), "search": ("any tier", "gpu-batch")}
    tiers = "known tiers: gpu-training, gpu-serving, gpu-batch, gpu-interactive"
    assert [note for note in answer.notes if note.startswith("Tenant ")] == [
        f'Tenant vision: spec.allowedTiers[0]: unknown tier "gpu-gold"; {tiers}; this name allows nothing',
        f'Tenant vision: spec.defaultTier: unknown tier "gpu-gold"; {tiers}; pods that would get it are refused',
    ]


GPU_CLASS = DeviceClass("gpu.nvidia.com", ("device.driver == 'gpu.nvidia.com'",), "nvidia.com/gpu")
DRA, PLUGIN = frozenset({"gpu.nvidia.com"}), frozenset({"nvidia.com/gpu"})
MIXED = (NodeSupply("d1", drivers=DRA), NodeSupply("d2", drivers=DRA), NodeSupply("p1", PLUGIN))


def with_class() -> TierPolicy:
    return structs.replace(policy(), classes={GPU_CLASS.name: GPU_CLASS})


def test_where_gpus_come_by_dra_no_tier_evicts_and_that_is_shown_node_by_node() -> None:
    found = posture_of(with_class(), supply=GpuSupply(MIXED, (1, 37)))
    said = (
        "no tier evicts anybody for devices of gpu.nvidia.com and nvidia.com/gpu on 2 nodes (d1, d2): these come by "
        "DRA; on node p1 a device plugin has nvidia.com/gpu, and they do"
    )
    assert [each.said for each in found.dra] == [said]
    assert f"{said}." in posture_answer(found).notes
    assert "Not for GPUs by DRA: gpu.nvidia.com on 2 nodes (d1, d2)" in posture_file(found)


def test_a_version_that_may_evict_for_devices_and_a_cluster_without_dra_read_nothing() -> None:
    assert posture_of(with_class(), supply=GpuSupply(MIXED, (1, 39))).dra == ()
    assert posture_of(with_class(), supply=GpuSupply((NodeSupply("p1", PLUGIN),), (1, 37))).dra == ()
    assert posture_of(with_class()).dra == ()
