"""A policy that the webhook would not take is refused by helm, in the webhook's words."""

import re
from typing import get_args

import pytest
import yaml

from tests.unit.config.test_policy_mistakes import MISTAKES, TWO_TIERS
from webhook.config.errors import ConfigError
from webhook.config.load import parse
from webhook.policy.values.tier_policy import HookKind

from .conftest import Refuse, Render
from .helm import Manifest

HEAD = {"apiVersion": "config.gpu-tiers.dev/v1alpha1", "kind": "TierPolicy"}
A_KIND = {"group": "ml.example.com", "kind": "Experiment", "plural": "experiments"}
HIGH = {"name": "high", "value": 2000}

BROKEN: dict[str, Manifest] = {
    "everything at once": {
        "defaultTier": "gold",
        "workloadTypes": {"training": "silver", "batch": "bronze"},
        "allowedTiersByType": {"interactive": ["gpu-batch", "lead"], "batch": []},
        "rules": [{"match": {"labels": {"a": "b"}}, "tier": "tin"}],
        "checkpoint": {"tiers": {"gpu-gold": {"kind": "none"}}},
    },
    "the preset's other maps, which name no tier of these": {
        "tiers": TWO_TIERS,
        "defaultTier": "low",
        "workloadTypes": {"training": "gpu-training"},
    },
    "a type that may have no tier at all": {"allowedTiersByType": {"training": []}},
    "three tiers of one name and value": {"tiers": [HIGH, HIGH, HIGH], "defaultTier": "high"},
    "a large value twice": {
        "tiers": [{"name": "a", "value": 10**9}, {"name": "b", "value": 10**9}],
        "defaultTier": "a",
    },
    "a second class's name before its tier": {
        "tiers": [{"name": "high-nonpreempting", "value": 1}, HIGH],
        "defaultTier": "high",
    },
    "a device class twice": {"resources": [{"deviceClassName": "gpu.nvidia.com"}] * 2},
    "a resource that is none": {"resources": [{"weight": "1"}]},
    "a kind twice": {"kinds": [A_KIND, A_KIND]},
    "a kind without its plural": {"kinds": [{"group": "ml.example.com", "kind": "Experiment"}]},
    "a gang without its plural": {"kinds": [{"group": "batch", "kind": "CronJob", "gang": True}]},
    "a scale without its plural": {"kinds": [{"group": "ray.io", "kind": "RayCluster", "scale": "spec.workers"}]},
    "a kind of two types": {"kinds": [{**A_KIND, "type": "batch", "usualType": "training"}]},
    "a pod as a workload": {"kinds": [{"kind": "Pod"}]},
    "a core kind that nobody looks at": {
        "rules": [{"match": {"kinds": [{"kind": "Secret"}]}, "tier": "gpu-batch"}],
    },
    "a hook without a kind": {"checkpoint": {"batch": {"seconds": 5}}},
    "half of a strategy": {"placement": {"gpu-batch": {"topologyKey": "rack"}, "gpu-training": {"strategy": "Spread"}}},
    "tolerations that no pod may have": {
        "placement": {
            "gpu-batch": {
                "tolerations": [
                    {},
                    {"operator": "Equal", "value": "x"},
                    {"key": "a", "operator": "Exists", "value": "x"},
                    {"key": "a", "tolerationSeconds": 0},
                    {"operator": "Exists", "effect": "NoSchedule", "tolerationSeconds": 5},
                ]
            }
        }
    },
    "schedulers that can't be": {
        "scheduling": {
            "gpu-batch": {"schedulerName": "default-scheduler"},
            "gpu-serving": {"schedulerName": "volcano", "queue": {"system": "KAI", "name": "serving"}},
            "gpu-training": {"schedulerName": "kai-scheduler", "queue": {"system": "Volcano", "name": "training"}},
        }
    },
    "rights that nobody would be asked for, as YAML reads Off": {"tierAccess": "RBAC", "templates": False},
    "a tier's hook with too much time": {"checkpoint": {"tiers": {"gpu-batch": {"kind": "file", "seconds": 591}}}},
}
GIVEN = {
    "path": "/data",
    "port": 80,
    "command": ["save"],
    "signal": "USR1",
    "doneFile": "/data/done",
    "pythonPath": "none",
    "reports": True,
}
HOOKS = [{"kind": kind, field: value} for kind in get_args(HookKind) for field, value in GIVEN.items()]
BROKEN["each field in each kind of hook"] = {
    "tiers": [{"name": f"t{number}", "value": number + 1} for number in range(len(HOOKS))],
    "defaultTier": "t0",
    "checkpoint": {"tiers": {f"t{number}": hook for number, hook in enumerate(HOOKS)}},
}
TABLE = {name: fields for name, (fields, _) in MISTAKES.items()} | BROKEN

BY_VALUE = {"a mode written small", "a preset that is none"}
"""These are values of their own in the chart (tests/chart/test_values.py)."""
TEXT_ONLY = {"a command that is not a list"}
"""Whoever writes a command as JSON in a text learns of its mistake from the webhook alone."""


def problems(fields: Manifest) -> list[str]:
    """Return what the webhook says about a policy with these fields."""
    with pytest.raises(ConfigError) as refused:
        parse(yaml.safe_dump(HEAD | fields))
    return list(refused.value.problems)


@pytest.mark.parametrize("name", sorted(TABLE.keys() - BY_VALUE - TEXT_ONLY))
def test_helm_refuses_what_the_webhook_refuses(refuse: Refuse, name: str) -> None:
    answer = refuse(policy=TABLE[name])
    if "don't meet the specifications of the schema" not in answer:
        said = [line.strip() for line in answer.splitlines() if line.startswith("  ")]
        assert sorted(said) == sorted(problems(TABLE[name]))
        return
    # The schema knows one field's type and range, and has words of its own; the field is the same.
    fields = [re.split(r"[.\[:]", problem)[0] for problem in problems(TABLE[name])]
    assert all(field in answer for field in fields), answer


@pytest.mark.parametrize("name", BROKEN)
def test_what_one_field_says_of_another_is_said_in_the_webhooks_words(refuse: Refuse, name: str) -> None:
    assert "The policy does not hold together" in refuse(policy=BROKEN[name])


def test_most_sentences_are_the_webhooks_own(refuse: Refuse) -> None:
    """Without this the test above might compare nothing."""
    ours = ("unknown tier", "another tier has", "non-preempting class", "listed twice", "allows only", "a hook of kind")
    wrong = [name for name, (_, problem) in MISTAKES.items() if any(each in problem for each in ours)]
    assert len(wrong) >= 10
    for name in wrong:
        assert MISTAKES[name][1] in refuse(policy=MISTAKES[name][0])


GOOD: dict[str, Manifest] = {
    "a preset's hook with more time": {"checkpoint": {"training": {"seconds": 300}}},
    "a tier whose pods have to go soon": {
        "checkpoint": {
            "tiers": {"gpu-batch": {"kind": "file", "seconds": 50}},
            "maxGracePeriodSecondsByTier": {"gpu-batch": 60},
        }
    },
    "no tiers of its own": {"tiers": []},
    "tiers of its own": {
        "tiers": TWO_TIERS,
        "defaultTier": "low",
        "workloadTypes": {"training": "high"},
        "allowedTiersByType": {"interactive": ["low"]},
        "rules": [{"match": {"kinds": [{"group": "batch", "kind": "Job"}]}, "tier": "high"}],
        "checkpoint": {"tiers": {"high": {"kind": "http", "port": "admin", "path": "/save?all"}}},
    },
    "a rule for a kind of its own": {
        "kinds": [A_KIND, {"group": "ray.io", "kind": "RayCluster", "usualType": "interactive"}],
        "rules": [{"match": {"kinds": [{"group": "ml.example.com", "kind": "Experiment"}]}, "tier": "gpu-batch"}],
    },
    "GPUs of two sorts": {
        "resources": [
            {"name": "nvidia.com/gpu", "weight": 1},
            {"name": "nvidia.com/gpu.shared", "weight": "0.125"},
            {"deviceClassName": "gpu.nvidia.com", "weight": 0.5},
        ],
        "resourceFlavors": [{"name": "h100", "nodeLabels": {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}}],
    },
    "each tier's scheduler and queue": {
        "scheduling": {
            "gpu-training": {"schedulerName": "volcano", "queue": {"system": "Volcano", "name": "training"}},
            "gpu-serving": {"schedulerName": "our-kai", "queue": {"system": "KAI", "name": "serving"}},
            "gpu-batch": {"queue": {"system": "KAI", "name": "batch"}},
            "gpu-interactive": {},
        }
    },
    "where each tier's pods run": {
        "placement": {
            "gpu-training": {"strategy": "Pack", "topologyKey": "topology.kubernetes.io/rack"},
            "gpu-serving": {"strategy": "Spread", "topologyKey": "zone", "nodeSelector": {"example.com/pool": ""}},
            "gpu-batch": {
                "maxRuntimeSeconds": 3600,
                "tolerations": [
                    {"operator": "Exists"},
                    {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60},
                    {"key": "pool", "value": "batch"},
                ],
            },
            "gpu-interactive": {},
        }
    },
    "what may be lost, and how many save at once": {
        "saves": {"maxAtRiskSeconds": {"gpu-training": 1200}, "atOnce": {"tenant": 8, "volumeClaim": 2}}
    },
    "what autoscalers are told": {
        "autoscaler": {"gpu-training": "Protect", "gpu-serving": "24h", "gpu-batch": "Allow"}
    },
    "signals of one's own, changed ones and one less": {
        "nodeSignals": [
            {"id": "house", "where": "Taint", "key": "example.com/ends-soon", "urgency": "Imminent"},
            {"id": "house-cordon", "where": "Unschedulable", "noticeSeconds": 3600},
            {"id": "karpenter", "urgency": "Possible"},
            {"id": "drain", "where": "Label", "key": "example.com/draining", "value": "true"},
            {"id": "cordon", "ignore": True},
        ]
    },
    "every kind of hook": {
        "checkpoint": {
            "training": {"kind": "file", "path": "/data/save/", "seconds": 60},
            "serving": {"kind": "exec", "command": ["save", "--all"]},
            "batch": {"kind": "signal", "signal": "SIGUSR2", "doneFile": "/data/done"},
            "interactive": {"kind": "sleep", "seconds": 15},
            "marginSeconds": 20,
        }
    },
}


@pytest.mark.parametrize("fields", GOOD.values(), ids=GOOD)
def test_helm_takes_what_the_webhook_takes(render: Render, fields: Manifest) -> None:
    written = yaml.safe_load(render(policy=fields).one("ConfigMap", "gpu-tiers")["data"]["policy.yaml"])
    assert parse(yaml.safe_dump(written)).tiers
