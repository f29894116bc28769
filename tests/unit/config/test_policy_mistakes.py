"""The sentence about each mistake in a policy file, with the field's path."""

from pathlib import Path

import pytest

from tests.builders import policy_file
from webhook.config.errors import ConfigError
from webhook.config.load import load, parse

TIERS = "known tiers: gpu-training, gpu-serving, gpu-batch, gpu-interactive"
TWO_TIERS = [{"name": "high", "value": 2000}, {"name": "low", "value": 10, "preemptionPolicy": "Never"}]

CAPS = "maxGracePeriodSecondsByTier"
MISTAKES: dict[str, tuple[dict[str, object], str]] = {
    "an unknown field": ({"adoptoin": True}, "adoptoin: there is no such field; did you mean adoption?"),
    "evidence of no grade": (
        {"raiseBy": "Shwon"},
        "raiseBy: \"Shwon\": should be 'Proven', 'Usual', 'Shown' or 'Hinted'",
    ),
    "a release that does not exist": (
        {"quotaReleaseStrategy": "Immediately"},
        "quotaReleaseStrategy: \"Immediately\": should be 'Terminal' or 'Terminating'",
    ),
    "an unknown field below": (
        {"checkpoint": {"training": {"kind": "file", "secs": 1}}},
        "checkpoint.training.secs: there is no such field; did you mean seconds?",
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
        "tiers[2].name: low-nonpreempting is the name of the non-preempting class of tier low; write another",
    ),
    "a name that is the system's": (
        {"tiers": [{"name": "system-gpu", "value": 9}], "defaultTier": "system-gpu"},
        "tiers[0].name: system-gpu: names that begin with system- are Kubernetes' own; write another",
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
    "rights that nobody would be asked for": (
        {"tierAccess": "RBAC", "templates": "Off"},
        "tierAccess: RBAC needs templates: ValidateOnly or Mutate, which ask at the workload",
    ),
    "a demotion to no tier": ({"demoteTo": ["gpu-batch", "gold"]}, f'demoteTo[1]: unknown tier "gold"; {TIERS}'),
    "a demotion to the highest tier": (
        {"demoteTo": ["gpu-training"]},
        "demoteTo[0]: gpu-training is the highest tier, so nothing is demoted to it; write a lower one",
    ),
    "a demotion to one tier twice": (
        {"demoteTo": ["gpu-batch", "gpu-batch"]},
        "demoteTo[1]: gpu-batch stands there twice; keep one",
    ),
    "a placement for no tier": (
        {"placement": {"gold": {"maxRuntimeSeconds": 60}}},
        f'placement.gold: unknown tier "gold"; {TIERS}',
    ),
    "a strategy that there is not": (
        {"placement": {"gpu-batch": {"strategy": "Binpack", "topologyKey": "rack"}}},
        "placement.gpu-batch.strategy: \"Binpack\": should be 'Pack' or 'Spread'",
    ),
    "a strategy without its key": (
        {"placement": {"gpu-batch": {"strategy": "Pack"}}},
        "placement.gpu-batch: strategy and topologyKey go together: write both or none",
    ),
    "a key that is not a label's": (
        {"placement": {"gpu-batch": {"strategy": "Pack", "topologyKey": "the rack"}}},
        'placement.gpu-batch.topologyKey: "the rack" is not a label; write it as in topology.kubernetes.io/rack',
    ),
    "a node label that none could have": (
        {"placement": {"gpu-batch": {"nodeSelector": {"pool": "a b"}}}},
        (
            'placement.gpu-batch.nodeSelector.pool: "a b" is not a value of a label; write letters and '
            "digits, - _ . between"
        ),
    ),
    "a toleration that equals nothing": (
        {"placement": {"gpu-batch": {"tolerations": [{}]}}},
        "placement.gpu-batch.tolerations[0]: operator Equal needs a key; operator Exists without one is for all taints",
    ),
    "a toleration that exists with a value": (
        {"placement": {"gpu-batch": {"tolerations": [{"key": "pool", "operator": "Exists", "value": "gpu"}]}}},
        "placement.gpu-batch.tolerations[0]: operator Exists takes no value",
    ),
    "a toleration for a while of what evicts nobody": (
        {"placement": {"gpu-batch": {"tolerations": [{"key": "a", "effect": "NoSchedule", "tolerationSeconds": 1}]}}},
        "placement.gpu-batch.tolerations[0]: tolerationSeconds goes with effect: NoExecute",
    ),
    "a runtime of nothing": (
        {"placement": {"gpu-batch": {"maxRuntimeSeconds": 0}}},
        'placement.gpu-batch.maxRuntimeSeconds: "0": should be greater than or equal to 1',
    ),
    "a scheduler for no tier": (
        {"scheduling": {"gold": {"schedulerName": "volcano"}}},
        f'scheduling.gold: unknown tier "gold"; {TIERS}',
    ),
    "a scheduler that every pod has": (
        {"scheduling": {"gpu-batch": {"schedulerName": "default-scheduler"}}},
        "scheduling.gpu-batch: schedulerName default-scheduler is what every pod has; leave it out",
    ),
    "a queue of another scheduler": (
        {"scheduling": {"gpu-batch": {"schedulerName": "volcano", "queue": {"system": "KAI", "name": "night"}}}},
        "scheduling.gpu-batch: schedulerName volcano is Volcano's, which knows no queues of KAI",
    ),
    "a queue of what has none for pods": (
        {"scheduling": {"gpu-batch": {"queue": {"system": "Kueue", "name": "night"}}}},
        "scheduling.gpu-batch.queue.system: \"Kueue\": should be 'Volcano' or 'KAI'",
    ),
    "a queue without a name": (
        {"scheduling": {"gpu-batch": {"queue": {"system": "KAI"}}}},
        "scheduling.gpu-batch.queue.name: is required",
    ),
    "a queue that none could be called": (
        {"scheduling": {"gpu-batch": {"queue": {"system": "KAI", "name": "Night Shift"}}}},
        'scheduling.gpu-batch.queue.name: "Night Shift" is not a name; write small letters and digits, - . between',
    ),
    "a protection of no tier": (
        {"autoscaler": {"gold": "Protect"}},
        f'autoscaler.gold: unknown tier "gold"; {TIERS}',
    ),
    "a protection in days": (
        {"autoscaler": {"gpu-training": "7d"}},
        (
            'autoscaler.gpu-training: "7d": should be Protect, Allow, or for how long to protect, in hours or '
            "minutes, as in 24h"
        ),
    ),
    "a signal to ignore that there is not": (
        {"nodeSignals": [{"id": "cordn", "ignore": True}]},
        (
            'nodeSignals[0]: "cordn" is not in the table; its ids: aks-gpu-missing, aks-gpu-xid, aks-nvlink, '
            "aws-maintenance, aws-rebalance, aws-scale-in, aws-spot-interruption, azure-scheduled-event, "
            "cluster-autoscaler, cluster-autoscaler-candidate, cordon, drain, eks-gpu-repair, gcp-termination, "
            "karpenter, maintenance, maintenance-now, nvsentinel-drain, nvsentinel-quarantine, shutdown"
        ),
    ),
    "a signal that stands nowhere": (
        {"nodeSignals": [{"id": "house"}]},
        "nodeSignals[0]: a signal of your own needs where: Taint, Condition, Label or Unschedulable",
    ),
    "a signal without its key": (
        {"nodeSignals": [{"id": "house", "where": "Label"}]},
        "nodeSignals[0]: Taint, Condition and Label need a key, and Unschedulable takes none",
    ),
    "a key of a cordon": (
        {"nodeSignals": [{"id": "cordon", "key": "example.com/cordoned"}]},
        "nodeSignals[0]: Taint, Condition and Label need a key, and Unschedulable takes none",
    ),
    "a signal twice": (
        {"nodeSignals": [{"id": "cordon", "ignore": True}] * 2},
        "nodeSignals[1].id: cordon: listed twice",
    ),
    "a signal on what nodes don't have": (
        {"nodeSignals": [{"id": "house", "where": "Annotation", "key": "a"}]},
        "nodeSignals[0].where: \"Annotation\": should be 'Taint', 'Condition', 'Label' or 'Unschedulable'",
    ),
    "a signal's key that none could have": (
        {"nodeSignals": [{"id": "house", "where": "Label", "key": "ends soon"}]},
        (
            'nodeSignals[0].key: "ends soon": should be the key of a taint or label, or a type of condition, as in '
            "example.com/ends-soon"
        ),
    ),
    "a default that is no tier": ({"defaultTier": "gold"}, f'defaultTier: unknown tier "gold"; {TIERS}'),
    "a type's tier that is none": (
        {"workloadTypes": {"training": "gold"}},
        f'workloadTypes.training: unknown tier "gold"; {TIERS}',
    ),
    "an allowed tier that is none": (
        {"allowedTiersByType": {"interactive": ["gpu-interactive", "gold"]}},
        f'allowedTiersByType.interactive[1]: unknown tier "gold"; {TIERS}',
    ),
    "a type's tier that the type may not have": (
        {"allowedTiersByType": {"interactive": ["gpu-batch"]}},
        "workloadTypes.interactive: gpu-interactive, but allowedTiersByType.interactive allows only gpu-batch",
    ),
    "a boost among tiers that Kueue does not know": (
        {"evictionCost": {"kueue": "Write"}},
        "evictionCost.kueue: Write needs kueue.workloadPriorityClasses: true, or Kueue may not know the tiers",
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
        f'rules[0].tier: unknown tier "gold"; {TIERS}',
    ),
    "a rule that says nothing": (
        {"rules": [{"match": {}, "tier": "gpu-batch"}]},
        "rules[0].match: matches nothing: give kinds, labels, namespaces or serviceAccounts (namespace:name)",
    ),
    "a mode written small": ({"mode": "enforce"}, "mode: \"enforce\": should be 'Audit', 'Warn' or 'Enforce'"),
    "a resource and a device class in one": (
        {"resources": [{"name": "x.io/a", "deviceClassName": "b"}]},
        "resources[0]: write one of name, deviceClassName and annotation",
    ),
    "an annotation that nobody reads": (
        {"resources": [{"annotation": "gpu-part"}]},
        "resources[0].annotation: \"gpu-part\": should be 'gpu-fraction' or 'gpu-memory'",
    ),
    "memory without the GPU's": (
        {"resources": [{"annotation": "gpu-memory"}]},
        "resources[0]: memoryPerGPU goes with the annotation gpu-memory: it needs one, and nothing else has one",
    ),
    "the memory of a GPU for a fraction": (
        {"resources": [{"annotation": "gpu-fraction", "memoryPerGPU": "80Gi"}]},
        "resources[0]: memoryPerGPU goes with the annotation gpu-memory: it needs one, and nothing else has one",
    ),
    "memory without its unit": (
        {"resources": [{"annotation": "gpu-memory", "memoryPerGPU": "81559"}]},
        'resources[0].memoryPerGPU: "81559" is not a memory size; write it with its unit, such as "80Gi" or "81559Mi"',
    ),
    "an annotation twice": (
        {"resources": [{"annotation": "gpu-fraction"}, {"annotation": "gpu-fraction"}]},
        "resources[1]: annotation gpu-fraction: listed twice",
    ),
    "a resource twice": ({"resources": [{"name": "x.io/a"}, {"name": "x.io/a"}]}, "resources[1]: x.io/a: listed twice"),
    "a resource without a domain": (
        {"resources": [{"name": "gpu"}]},
        'resources[0].name: "gpu": should be as in nvidia.com/gpu: a domain, a slash, a name',
    ),
    "a weight below nothing": (
        {"resources": [{"name": "x.io/a", "weight": -1}]},
        'resources[0].weight: "-1": should be greater than or equal to 0',
    ),
    "a flavor twice": (
        {"resourceFlavors": [{"name": "h", "nodeLabels": {"a": "b"}}, {"name": "h", "nodeLabels": {"a": "c"}}]},
        "resourceFlavors[1].name: h: listed twice",
    ),
    "a hook that is none": (
        {"checkpoint": {"training": {"kind": "sigusr1"}}},
        (
            'checkpoint.training.kind: "sigusr1": '
            "should be 'file', 'listen', 'http', 'exec', 'signal', 'sigterm', 'sleep' or 'none'"
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
    "a command that is not a list": (
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
        f'checkpoint.tiers.gpu-gold: unknown tier "gpu-gold"; {TIERS}',
    ),
    "more time than a grace period may have": (
        {"checkpoint": {"training": {"kind": "file", "seconds": 900}}},
        "checkpoint: training.seconds is 900, but maxGracePeriodSeconds less marginSeconds leaves 590",
    ),
    "more time than the pods of a tier have": (
        {"checkpoint": {"tiers": {"gpu-batch": {"kind": "file", "seconds": 55}}, CAPS: {"gpu-batch": 60}}},
        (
            "checkpoint: tiers.gpu-batch.seconds is 55, but maxGracePeriodSecondsByTier.gpu-batch less marginSeconds "
            "leaves 50"
        ),
    ),
    "a tier that leaves no time to save": (
        {"checkpoint": {CAPS: {"gpu-batch": 10}}},
        "checkpoint: marginSeconds must be below maxGracePeriodSecondsByTier.gpu-batch, or no time is left to save",
    ),
    "a tier whose pods may take longer than any pod may": (
        {"checkpoint": {CAPS: {"gpu-batch": 900}}},
        "checkpoint: maxGracePeriodSecondsByTier.gpu-batch is 900, which is above maxGracePeriodSeconds, 600",
    ),
    "the grace period of a tier that there is not": (
        {"checkpoint": {CAPS: {"gpu-gold": 60}}},
        f'checkpoint.maxGracePeriodSecondsByTier.gpu-gold: unknown tier "gpu-gold"; {TIERS}',
    ),
    "the whole file system as a folder": (
        {"checkpoint": {"training": {"kind": "file", "path": "//"}}},
        "checkpoint.training.path: must be an absolute path below / of letters, digits and . _ - /",
    ),
    "no time left to save": (
        {"checkpoint": {"marginSeconds": 600}},
        "checkpoint: marginSeconds must be below maxGracePeriodSeconds, or no time is left to save",
    ),
    "a way with templates that does not exist": (
        {"templates": "Patch"},
        "templates: \"Patch\": should be 'Off', 'ValidateOnly' or 'Mutate'",
    ),
    "an unknown field of Kueue's": (
        {"kueue": {"priorityClasses": True}},
        "kueue.priorityClasses: there is no such field; did you mean workloadPriorityClasses?",
    ),
    "a selector without the values it compares with": (
        {"kueue": {"managedJobsNamespaceSelector": {"matchExpressions": [{"key": "team", "operator": "In"}]}}},
        (
            "kueue.managedJobsNamespaceSelector.matchExpressions[0]: "
            "In and NotIn need values, Exists and DoesNotExist take none"
        ),
    ),
    "a preset that is none": (
        {"preset": "five-tier"},
        'preset: "five-tier" does not exist; write one of four-tier, inference-first, three-tier',
    ),
    "another file's apiVersion": (
        {"apiVersion": "v1"},
        "apiVersion: \"v1\": should be 'config.gpu-tiers.dev/v1alpha1'",
    ),
}


@pytest.mark.parametrize(("fields", "problem"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_reported_with_its_field(fields: dict[str, object], problem: str) -> None:
    with pytest.raises(ConfigError) as refused:
        parse(policy_file(**fields), "policy.yaml")
    assert refused.value.problems == (problem,)
    assert str(refused.value) == f"policy.yaml: {problem}"


def test_all_mistakes_are_reported_at_once() -> None:
    with pytest.raises(ConfigError) as refused:
        parse(policy_file(defaultTier="gold", workloadTypes={"batch": "silver"}))
    assert [problem.partition(":")[0] for problem in refused.value.problems] == ["defaultTier", "workloadTypes.batch"]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"moed": "Enforce"}, "moed: there is no such field"),
        ({"mode": "Enfroce"}, "mode: \"Enfroce\": should be 'Audit', 'Warn' or 'Enforce'"),
        ({"workloadTypes": {"trainnig": "gpu-batch"}}, "workloadTypes.trainnig: "),
        ({"checkpoint": {"training": {"kind": "file", "secs": 1}}}, "checkpoint.training.secs: there is no such field"),
    ],
)
def test_a_field_that_is_wrong_hides_no_name_that_is(fields: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError) as refused:
        parse(policy_file(defaultTier="gpu-urgent", **fields))
    first, second = refused.value.problems
    assert first.startswith(message)
    assert second == f'defaultTier: unknown tier "gpu-urgent"; {TIERS}'


@pytest.mark.parametrize("fields", [{"teirs": TWO_TIERS}, {"tiers": 5}, {"tiers": [{"name": "low", "value": 0}]}])
def test_where_the_tiers_are_wrong_no_name_of_one_is_called_a_mistake(fields: dict[str, object]) -> None:
    with pytest.raises(ConfigError) as refused:
        parse(policy_file(defaultTier="low", **fields))
    (only,) = refused.value.problems
    assert only.startswith(("teirs: ", "tiers"))


def test_a_value_of_the_wrong_sort_is_reported_in_words() -> None:
    tiers = [{"name": "Gold", "value": "much"}, {"name": "low", "value": 1.5}, {"name": 3, "value": 1}]
    with pytest.raises(ConfigError) as refused:
        parse(policy_file(tiers=tiers, adoption="maybe", rules=[{"match": {"namespaces": {"a": 1}}, "tier": None}]))
    assert refused.value.problems == (
        'adoption: "maybe": should be true or false',
        'tiers[0].name: "Gold": should be small letters and digits, with - or . between, as in gpu-batch',
        'tiers[0].value: "much": should be a whole number',
        'tiers[1].value: "1.5": should be a whole number',
        'tiers[2].name: "3": should be text; write it in quotes',
        "defaultTier: is required",
        "rules[0].match.namespaces: should be a list",
        "rules[0].tier: should be text",
    )


_HEAD = "apiVersion: config.gpu-tiers.dev/v1alpha1\nkind: TierPolicy\n"
NO_POLICIES = {
    "nothing": ("", "not a TierPolicy: expected a mapping with apiVersion and kind"),
    "a list": ("- a", "not a TierPolicy: expected a mapping with apiVersion and kind"),
    "two policies": (f"{_HEAD}---\n{_HEAD}", "holds 2 documents; a policy file is one"),
    "no YAML": ("a: [", "not YAML: "),
    "a key twice": ("kind: TierPolicy\nkind: TierPolicy\n", 'not YAML: "kind" is written twice'),
    "an endless nesting": ("a: " + "[" * 5000, "nested too deep"),
    "a tag, which is overlooked": (
        "apiVersion: config.gpu-tiers.dev/v1alpha1\nkind: TierPolicy\na: !!python/object/apply:os.system [id]",
        "a: there is no such field",
    ),
}


@pytest.mark.parametrize(("text", "problem"), NO_POLICIES.values(), ids=NO_POLICIES)
def test_a_text_that_is_no_policy(text: str, problem: str) -> None:
    with pytest.raises(ConfigError) as refused:
        parse(text)
    (said,) = refused.value.problems
    assert said.startswith(problem)
    assert "\n" not in said


def test_an_empty_document_beside_the_policy_counts_as_none() -> None:
    """Such a document comes from `---` at the end of a file, or from the `null` of a yq that found nothing."""
    assert parse(f"{_HEAD}adoption: true\n---\nnull\n").adoption


def test_a_file_that_can_t_be_read(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="can't be read"):
        load(tmp_path / "absent.yaml")
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match="can't be read"):
        load(tmp_path / "binary")


TEXTS = ["a: 2026-02-30", "a: !!bool maybe", f"a: {'9' * 6000}", "a: [", "a: 1\na: 2", "[" * 5000]


@pytest.mark.parametrize("text", TEXTS, ids=lambda text: text[:12])
def test_a_text_that_is_no_policy_is_said_to_be_none(text: str) -> None:
    with pytest.raises(ConfigError):
        parse(text, "policy.yaml")


@pytest.mark.parametrize(
    ("fields", "accepted"),
    [
        ({"tiers": [{"name": "a", "value": 1, "colour": "red"}]}, "name, value, preemptionPolicy, description"),
        ({"placement": {"a": {"x": 1}}}, "strategy, topologyKey, tolerations, nodeSelector, maxRuntimeSeconds"),
    ],
    ids=["in a list", "in a map of tiers"],
)
def test_where_no_field_is_near_all_are_listed(fields: dict[str, object], accepted: str) -> None:
    with pytest.raises(ConfigError) as refused:
        parse(policy_file(**fields), "policy.yaml")
    assert any(each.endswith(f"there is no such field; write one of {accepted}") for each in refused.value.problems)
