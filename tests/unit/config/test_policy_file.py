"""The policy file: what it means, and what is said of each mistake, with the field's path."""

from decimal import Decimal
from pathlib import Path

import pytest

from tests.builders import policy_file
from webhook.config.errors import ConfigError
from webhook.config.load import load, parse, presets
from webhook.objects.group_kind import GroupKind
from webhook.policy.values.hooks import Hook
from webhook.policy.values.tier_policy import Match, Mode, Rule
from webhook.policy.workloads.workload_types import WorkloadType

TIERS = "the tiers are gpu-training, gpu-serving, gpu-batch, gpu-interactive"
TWO_TIERS = [{"name": "high", "value": 2000}, {"name": "low", "value": 10, "preemptionPolicy": "Never"}]
EXAMPLES = Path(__file__).parents[3] / "examples" / "policies"

PRESETS = {
    "four-tier": (
        {"gpu-training": 1000, "gpu-serving": 800, "gpu-batch": 400, "gpu-interactive": 200},
        "gpu-interactive",
    ),
    "three-tier": ({"critical": 1000, "normal": 500, "scavenger": 100}, "scavenger"),
    "inference-first": ({"high-priority-inference": 1_000_000, "low-priority-training": 1000}, "low-priority-training"),
}


@pytest.mark.parametrize(("name", "tiers", "default"), [(name, *found) for name, found in PRESETS.items()])
def test_each_preset_is_a_whole_policy(name: str, tiers: dict[str, int], default: str) -> None:
    policy = parse(policy_file(preset=name))
    assert {tier.name: tier.value for tier in policy.tiers} == tiers
    assert policy.default_tier == default
    assert set(policy.tier_of_type) == set(WorkloadType)
    assert policy.checkpoint.hooks == {WorkloadType.TRAINING: Hook("file", 120, "/run/gpu-tiers")}
    assert policy.weights["nvidia.com/gpu"] == 1
    assert policy.weights["deviceclass.resource.kubernetes.io/gpu.nvidia.com"] == 1


DIVIDED = {
    "A100 40 GB": {"1g.5gb": 7, "1g.10gb": 4, "2g.10gb": 3, "3g.20gb": 2, "4g.20gb": 1, "7g.40gb": 1},
    "H100 80 GB": {"1g.10gb": 7, "1g.20gb": 4, "2g.20gb": 3, "3g.40gb": 2, "4g.40gb": 1, "7g.80gb": 1},
    "H100 NVL": {"1g.12gb": 7, "1g.24gb": 4, "2g.24gb": 3, "3g.47gb": 2, "4g.47gb": 1, "7g.94gb": 1},
    "GH200": {"1g.12gb": 7, "1g.24gb": 4, "2g.24gb": 3, "3g.48gb": 2, "4g.48gb": 1, "7g.96gb": 1},
    "H200": {"1g.18gb": 7, "1g.35gb": 4, "2g.35gb": 3, "3g.71gb": 2, "4g.71gb": 1, "7g.141gb": 1},
    "B200": {"1g.23gb": 7, "1g.45gb": 4, "2g.45gb": 3, "3g.90gb": 2, "4g.90gb": 1, "7g.180gb": 1},
    "GB200": {"1g.23gb": 7, "1g.47gb": 4, "2g.47gb": 3, "3g.93gb": 2, "4g.93gb": 1, "7g.186gb": 1},
    "B300": {"1g.34gb": 7, "1g.67gb": 4, "2g.67gb": 3, "3g.135gb": 2, "4g.135gb": 1, "7g.269gb": 1},
    "GB300": {"1g.35gb": 7, "1g.70gb": 4, "2g.70gb": 3, "3g.139gb": 2, "4g.139gb": 1, "7g.278gb": 1},
    "A30": {"1g.6gb": 4, "2g.12gb": 2, "4g.24gb": 1},
    "RTX PRO 6000": {"1g.24gb": 4, "2g.48gb": 2, "4g.96gb": 1},
    "mixed H200": {"1g.18gb": 2, "2g.35gb": 1, "3g.71gb": 1},
}
"""How often a GPU can be divided so, at most, as the GPU operator's own configurations have it."""


@pytest.mark.parametrize(("gpu", "slices"), DIVIDED.items(), ids=DIVIDED)
def test_the_slices_of_a_divided_gpu_never_add_up_to_more_than_one(gpu: str, slices: dict[str, int]) -> None:
    weights = parse(policy_file(preset="four-tier")).weights
    shares = {name: weights[f"nvidia.com/mig-{name}"] * count for name, count in slices.items()}
    assert all(0 < share <= 1 for share in shares.values()), shares
    if gpu.startswith("mixed"):
        assert sum(shares.values()) == 1
    else:
        assert list(shares.values())[-1] == 1


def test_a_preset_s_default_tier_evicts_nobody() -> None:
    for name in presets():
        policy = parse(policy_file(preset=name))
        default = policy.tiers.get(policy.default_tier)
        assert default
        assert default.preemption_policy == "Never"


def test_the_presets_are_those_that_are_tested_here() -> None:
    assert presets() == sorted(PRESETS)


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
    assert policy.weights == {"example.com/npu": Decimal("0.25")}


HOOKS = {
    "file": ({"kind": "file"}, Hook("file", 120, "/run/gpu-tiers")),
    "file, elsewhere": ({"kind": "file", "path": "/data/hook/"}, Hook("file", 120, "/data/hook")),
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


MISTAKES: dict[str, tuple[dict[str, object], str]] = {
    "an unknown field": ({"colour": "red"}, "colour: there is no such field"),
    "an unknown field below": (
        {"checkpoint": {"training": {"kind": "file", "secs": 1}}},
        "checkpoint.training.secs: there is no such field",
    ),
    "a tier twice": (
        {"tiers": [*TWO_TIERS, {"name": "low", "value": 11}], "defaultTier": "low"},
        "tiers[2].name: low: another tier has that name",
    ),
    "two tiers of one value": (
        {"tiers": [*TWO_TIERS, {"name": "lower", "value": 10}], "defaultTier": "low"},
        "tiers[2].value: 10: another tier has that value",
    ),
    "a tier with another's second class's name": (
        {"tiers": [*TWO_TIERS, {"name": "low-nonpreempting", "value": 9}], "defaultTier": "low"},
        "tiers[2].name: low-nonpreempting is the non-preempting class of tier low",
    ),
    "a value that is the system's": (
        {"tiers": [{"name": "low", "value": 1_000_000_001}], "defaultTier": "low"},
        'tiers[0].value: "1000000001": should be less than or equal to 1000000000',
    ),
    "a value below every pod's": (
        {"tiers": [{"name": "low", "value": 0}], "defaultTier": "low"},
        'tiers[0].value: "0": should be greater than or equal to 1',
    ),
    "tiers without a default": ({"tiers": TWO_TIERS}, "defaultTier: is required"),
    "a default that is no tier": ({"defaultTier": "gold"}, f"defaultTier: gold is no tier; {TIERS}"),
    "a type's tier that is none": (
        {"workloadTypes": {"training": "gold"}},
        f"workloadTypes.training: gold is no tier; {TIERS}",
    ),
    "an allowed tier that is none": (
        {"allowedTiersByType": {"interactive": ["gpu-interactive", "gold"]}},
        f"allowedTiersByType.interactive[1]: gold is no tier; {TIERS}",
    ),
    "a type's tier that the type may not have": (
        {"allowedTiersByType": {"interactive": ["gpu-batch"]}},
        "workloadTypes.interactive: gpu-interactive, but allowedTiersByType.interactive allows gpu-batch alone",
    ),
    "a rule for a kind that nobody looks at": (
        {"rules": [{"match": {"kinds": [{"group": "example.com", "kind": "Job"}]}, "tier": "gpu-batch"}]},
        (
            "rules[0].match.kinds[0]: example.com/Job is not in the table of workload kinds (docs/workloads.md), "
            "so the rule could never apply; add it under kinds"
        ),
    ),
    "nothing that counts as a GPU": (
        {"resources": []},
        "resources: at least one is required, or nothing counts as a GPU",
    ),
    "tiers that are no list": ({"rules": "x"}, 'rules: "x": should be a list'),
    "a rule's tier that is none": (
        {"rules": [{"match": {"namespaces": ["x"]}, "tier": "gold"}]},
        f"rules[0].tier: gold is no tier; {TIERS}",
    ),
    "a rule that says nothing": (
        {"rules": [{"match": {}, "tier": "gpu-batch"}]},
        "rules[0].match: matches nothing: give kinds, labels, namespaces or serviceAccounts (namespace:name)",
    ),
    "a mode written small": ({"mode": "enforce"}, "mode: \"enforce\": should be 'Audit', 'Warn' or 'Enforce'"),
    "a resource and a device class in one": (
        {"resources": [{"name": "a", "deviceClassName": "b"}]},
        "resources[0]: write either name or deviceClassName",
    ),
    "a resource twice": ({"resources": [{"name": "a"}, {"name": "a"}]}, "resources[1]: a: listed twice"),
    "a weight of nothing": (
        {"resources": [{"name": "a", "weight": 0}]},
        'resources[0].weight: "0": should be greater than 0',
    ),
    "a flavor twice": (
        {"resourceFlavors": [{"name": "h", "nodeLabels": {"a": "b"}}, {"name": "h", "nodeLabels": {"a": "c"}}]},
        "resourceFlavors[1].name: h: listed twice",
    ),
    "a hook that is none": (
        {"checkpoint": {"training": {"kind": "sigusr1"}}},
        (
            'checkpoint.training.kind: "sigusr1": '
            "should be 'file', 'http', 'exec', 'signal', 'sigterm', 'sleep' or 'none'"
        ),
    ),
    "a folder that a shell would read otherwise": (
        {"checkpoint": {"training": {"kind": "file", "path": "/run/$(id)"}}},
        "checkpoint.training.path: must be an absolute path below / of letters, digits and . _ - /",
    ),
    "a folder above its own": (
        {"checkpoint": {"training": {"kind": "file", "path": "/run/../etc"}}},
        "checkpoint.training.path: must be an absolute path below / of letters, digits and . _ - /",
    ),
    "a hook's field that another kind has": (
        {"checkpoint": {"serving": {"kind": "sleep", "doneFile": "/data/done"}}},
        "checkpoint.serving: a hook of kind sleep takes no doneFile",
    ),
    "a hook without what it needs": (
        {"checkpoint": {"serving": {"kind": "http"}}},
        "checkpoint.serving: a hook of kind http needs a port",
    ),
    "a port that there is not": (
        {"checkpoint": {"serving": {"kind": "http", "port": 65_536}}},
        "checkpoint.serving.port: must be a port: a number from 1 to 65535, or a port's name",
    ),
    "a path that is none of a URL": (
        {"checkpoint": {"serving": {"kind": "http", "port": "admin", "path": "save now"}}},
        "checkpoint.serving.path: must be a URL's path: / and printable ASCII without blanks",
    ),
    "a command that is no list": (
        {"checkpoint": {"training": {"kind": "exec", "command": '["save", 1]'}}},
        "checkpoint.training.command: must be a command: a list of texts, 4096 characters at most",
    ),
    "a signal that nobody can catch": (
        {"checkpoint": {"training": {"kind": "signal", "signal": "SIGKILL"}}},
        "checkpoint.training.signal: must be a signal that a program can catch: HUP, INT, QUIT, USR1, USR2, TERM",
    ),
    "no time at all": (
        {"checkpoint": {"training": {"kind": "file", "seconds": 0}}},
        'checkpoint.training.seconds: "0": should be greater than or equal to 1',
    ),
    "a time before now": (
        {"checkpoint": {"training": {"kind": "file", "seconds": -30}}},
        'checkpoint.training.seconds: "-30": should be greater than or equal to 1',
    ),
    "a hook of a tier that there is not": (
        {"checkpoint": {"tiers": {"gpu-gold": {"kind": "none"}}}},
        f"checkpoint.tiers.gpu-gold: gpu-gold is no tier; {TIERS}",
    ),
    "more time than a grace period may have": (
        {"checkpoint": {"training": {"kind": "file", "seconds": 900}}},
        "checkpoint: training.seconds is 900, but maxGracePeriodSeconds less marginSeconds leaves 590",
    ),
    "the whole file system as a folder": (
        {"checkpoint": {"training": {"kind": "file", "path": "//"}}},
        "checkpoint.training.path: must be an absolute path below / of letters, digits and . _ - /",
    ),
    "no time left to save": (
        {"checkpoint": {"marginSeconds": 600}},
        "checkpoint: marginSeconds must be below maxGracePeriodSeconds, or no time is left to save",
    ),
    "a preset that is none": (
        {"preset": "five-tier"},
        'preset: "five-tier" is none; write one of four-tier, inference-first, three-tier',
    ),
    "another file's apiVersion": (
        {"apiVersion": "v1"},
        "apiVersion: \"v1\": should be 'config.gpu-tiers.dev/v1alpha1'",
    ),
}


@pytest.mark.parametrize(("fields", "problem"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_told_with_its_field(fields: dict[str, object], problem: str) -> None:
    with pytest.raises(ConfigError) as refused:
        parse(policy_file(**fields), "policy.yaml")
    assert refused.value.problems == (problem,)
    assert str(refused.value) == f"policy.yaml: {problem}"


def test_all_mistakes_are_told_at_once() -> None:
    with pytest.raises(ConfigError) as refused:
        parse(policy_file(defaultTier="gold", workloadTypes={"batch": "silver"}))
    assert [problem.partition(":")[0] for problem in refused.value.problems] == ["defaultTier", "workloadTypes.batch"]


NO_POLICIES = {
    "nothing": ("", "not a TierPolicy: expected a mapping with apiVersion, kind and preset"),
    "a list": ("- a", "not a TierPolicy: expected a mapping with apiVersion, kind and preset"),
    "no YAML": ("a: [", "not YAML: "),
    "a key twice": ("kind: TierPolicy\nkind: TierPolicy\n", 'not YAML: "kind" is written twice'),
    "an endless nesting": ("a: " + "[" * 5000, "nested too deep"),
    "a tag": ("a: !!python/object/apply:os.system [id]", "not YAML: "),
}


@pytest.mark.parametrize(("text", "problem"), NO_POLICIES.values(), ids=NO_POLICIES)
def test_a_text_that_is_no_policy(text: str, problem: str) -> None:
    with pytest.raises(ConfigError) as refused:
        parse(text)
    (said,) = refused.value.problems
    assert said.startswith(problem)
    assert "\n" not in said


def test_a_file_that_can_t_be_read(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="can't be read"):
        load(tmp_path / "absent.yaml")
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match="can't be read"):
        load(tmp_path / "binary")
