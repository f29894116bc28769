"""The meaning of a policy file."""

from decimal import Decimal
from pathlib import Path

import pytest

from tests.builders import policy_file
from webhook.config.load import load, parse
from webhook.objects.group_kind import GroupKind
from webhook.policy.values.tier_policy import Hook, Match, Mode, Rule
from webhook.policy.workloads.kind_table import WorkloadType

TWO_TIERS = [{"name": "high", "value": 2000}, {"name": "low", "value": 10, "preemptionPolicy": "Never"}]
EXAMPLES = Path(__file__).parents[3] / "examples" / "policies"


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.yaml")), ids=lambda path: path.stem)
def test_the_example_policies_load(path: Path) -> None:
    assert load(path).tiers.names()


def test_the_mildest_mode_is_the_default() -> None:
    assert parse("apiVersion: config.gpu-tiers.dev/v1alpha1\nkind: TierPolicy\n").mode is Mode.Audit


def test_maps_are_merged_into_the_preset_s_and_lists_take_their_place() -> None:
    policy = parse(
        policy_file(
            workloadTypes={"batch": "gpu-interactive"},
            checkpoint={"marginSeconds": 20, "serving": {"kind": "sigterm", "seconds": 30}},
            resources=[{"name": "example.com/npu", "weight": "0.25"}],
        )
    )
    assert policy.tier_of_type[WorkloadType.BATCH] == "gpu-interactive"
    assert policy.tier_of_type[WorkloadType.TRAINING] == "gpu-training"
    assert policy.checkpoint.margin == 20
    assert policy.checkpoint.hooks[WorkloadType.TRAINING].kind == "file"
    assert policy.checkpoint.hooks[WorkloadType.SERVING] == Hook("sigterm", 30)
    assert policy.weights.listed == {"example.com/npu": Decimal("0.25")}


HOOKS = {
    "file": ({"kind": "file"}, Hook("file", 120, "/run/gpu-tiers")),
    "file, elsewhere": ({"kind": "file", "path": "/data/hook/"}, Hook("file", 120, "/data/hook")),
    "file, that reports": ({"kind": "file", "reports": True}, Hook("file", 120, "/run/gpu-tiers", reports=True)),
    "http": ({"kind": "http", "port": 8080}, Hook("http", 120, "/checkpoint", 8080)),
    "http, by the port's name": (
        {"kind": "http", "port": "admin", "path": "/save?all=1"},
        Hook("http", 120, "/save?all=1", "admin"),
    ),
    "exec, a list": ({"kind": "exec", "command": ["save", "-v"]}, Hook("exec", 120, command=("save", "-v"))),
    "exec, words": ({"kind": "exec", "command": "save 'to disk'"}, Hook("exec", 120, command=("save", "to disk"))),
    "signal": ({"kind": "signal"}, Hook("signal", 120, signal="USR1", done_file="/run/gpu-tiers/done")),
    "signal, another": (
        {"kind": "signal", "signal": "SIGUSR2", "doneFile": "/data/done", "seconds": 9},
        Hook("signal", 9, signal="USR2", done_file="/data/done"),
    ),
    "sigterm": ({"kind": "sigterm", "seconds": 60}, Hook("sigterm", 60)),
    "sleep": ({"kind": "sleep"}, Hook("sleep", 15)),
    "none": ({"kind": "none"}, Hook("none")),
}


@pytest.mark.parametrize("name", HOOKS)
def test_a_hook_by_type_and_by_tier(name: str) -> None:
    section, hook = HOOKS[name]
    checkpoint = parse(policy_file(checkpoint={"serving": section, "tiers": {"gpu-batch": section}})).checkpoint
    assert (checkpoint.hooks[WorkloadType.SERVING], checkpoint.tiers["gpu-batch"]) == (hook, hook)


def test_a_preset_s_hook_can_be_taken_away() -> None:
    assert parse(policy_file(checkpoint={"training": None})).checkpoint.hooks == {}


def test_tiers_of_one_s_own_inherit_nothing_that_names_the_preset_s() -> None:
    policy = parse(policy_file(tiers=TWO_TIERS, defaultTier="low", workloadTypes={"training": "high"}))
    assert policy.tiers.names() == "high, low"
    assert (policy.tier_of_type, policy.allowed_by_type, policy.rules) == ({WorkloadType.TRAINING: "high"}, {}, ())


def test_no_tiers_written_down_are_the_preset_s() -> None:
    assert parse(policy_file(tiers=[])).tiers.names().startswith("gpu-training")


def test_rules_and_flavors_are_read() -> None:
    match = {
        "kinds": [{"group": "ray.io", "kind": "RayJob"}],
        "labels": {"purpose": "training"},
        "namespaces": ["team-alpha"],
        "serviceAccounts": ["team-alpha:nightly"],
    }
    flavors = [{"name": "h100", "nodeLabels": {"nvidia.com/gpu.product": "H100"}}]
    policy = parse(policy_file(rules=[{"match": match, "tier": "gpu-training"}], resourceFlavors=flavors))
    read = Match((GroupKind("ray.io", "RayJob"),), {"purpose": "training"}, ("team-alpha",), ("team-alpha:nightly",))
    assert policy.rules == (Rule(read, "gpu-training"),)
    assert [(flavor.name, flavor.node_labels) for flavor in policy.flavors] == [
        ("h100", {"nvidia.com/gpu.product": "H100"})
    ]


@pytest.mark.parametrize("written", ["Off", "'Off'", "false"])
def test_off_may_be_written_without_quotes(written: str) -> None:
    """YAML takes it for false."""
    head = "apiVersion: config.gpu-tiers.dev/v1alpha1\nkind: TierPolicy\n"
    assert parse(f"{head}templates: {written}\n").templates == "Off"
    assert parse(head).templates == "ValidateOnly"


def test_kueue_reads_nothing_by_default() -> None:
    assert parse(policy_file()).kueue is None
    assert parse(policy_file(kueue={"manageJobsWithoutQueueName": True})).kueue is None


def test_the_namespaces_in_which_kueue_manages_all_jobs() -> None:
    selector = {"matchLabels": {"gpus": "yes"}, "matchExpressions": [{"key": "old", "operator": "DoesNotExist"}]}
    fields = {"workloadPriorityClasses": True, "managedJobsNamespaceSelector": selector}
    named = parse(policy_file(kueue=fields)).kueue
    unnamed = parse(policy_file(kueue={**fields, "manageJobsWithoutQueueName": True})).kueue
    assert named is not None
    assert unnamed is not None
    assert not named.manages_unnamed({"gpus": "yes"})
    assert unnamed.manages_unnamed({"gpus": "yes"})
    assert not unnamed.manages_unnamed({"gpus": "yes", "old": ""})
