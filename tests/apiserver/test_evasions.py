"""Ways round gpu-tiers, each tried as somebody with the role `edit` in one namespace, and the answer to each."""

import json
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import yaml

from .installed import Installed, Tree, gpu_pod

pytestmark = pytest.mark.apiserver

ROWS = yaml.safe_load(Path(__file__).with_name("evasions.yaml").read_text())
ATTEMPTS = [row for group in ROWS for row in group["attempts"]]
TENANT = "alpha"
ATTACKER = "mallory"
QUOTA = {"maxTier": "gpu-serving", "quotas": [{"gpus": 2}]}


@pytest.fixture(scope="module")
def home(installed: Installed) -> Iterator[str]:
    """The attacker's namespace: a tenant's, whose other pod holds one of its two GPUs."""
    cluster, name = installed.cluster, "evasions"
    for command in (
        ("create", "namespace", name),
        ("create", "rolebinding", "mallory", "--clusterrole=edit", "--user=mallory", f"--namespace={name}"),
    ):
        cluster.kubectl(*command)
    installed.tenant(TENANT, name, **QUOTA)
    installed.eventually(lambda: not installed.create(gpu_pod("bystander"), name).code, "the other pod")
    above = training_pod({}) | {"metadata": {"name": "above"}}
    above["spec"]["priorityClassName"] = "system-node-critical"
    policy = "ValidatingAdmissionPolicy 'gpu-tiers-ceilings'"
    installed.eventually(lambda: policy in installed.create(above, name, dry_run=True).stderr, "its ceiling")
    yield name
    cluster.api.delete(f"tenantquota/{TENANT}")
    cluster.api.delete(f"namespace/{name}", wait=False)


@pytest.mark.parametrize(
    "row", [row for row in ATTEMPTS if "story" not in row], ids=lambda row: row["attempt"].replace(" ", "_")
)
def test_the_answer_is_the_one_that_the_table_says(installed: Installed, home: str, row: Tree) -> None:
    made = row.get("apply") or merged(training_pod(row.get("limits", {"nvidia.com/gpu": 1})), row.get("pod", {}))
    answer = installed.create(made, home, user=ATTACKER)
    try:
        assert (said(answer.stderr) if answer.code else became(json.loads(answer.stdout))) == row.get("answer")
    finally:
        if not answer.code:
            one = f"{made['kind'].lower()}/{made['metadata']['name']}"
            installed.api.delete(one, namespace=home, seconds=0)
            installed.eventually(lambda: installed.usage(TENANT) == "total 1/2", "the attempt's end")


@pytest.mark.parametrize("row", [row for row in ATTEMPTS if "story" in row], ids=lambda row: row["story"])
def test_a_story_is_a_test(row: Tree) -> None:
    file, _, name = row["story"].partition("::")
    assert callable(getattr(import_module(file.removesuffix(".py").replace("/", ".")), name))


def training_pod(limits: Tree) -> Tree:
    """A pod that trains."""
    train = {"name": "train", "image": "example.com/train:1", "command": ["torchrun", "train.py"]}
    spec = {"containers": [train | {"resources": {"limits": limits}}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "spec": spec}


def said(error: str) -> str:
    """The id of a refusal of ours; otherwise its sentence, without kubectl's words and what is new at each run."""
    last = error.strip().splitlines()[-1]
    if (own := re.search(r"\[[a-z-]+\]$", last)) is not None:
        return own[0]
    sentence = re.sub(r"^Error from server \(\w+\): (error when creating \S+: )?(.*denied (the )?request: )?", "", last)
    return sentence.replace("evasions", TENANT)


def became(pod: Tree) -> str:
    """Return what an admitted pod became."""
    spec = pod["spec"]
    return f"admitted: {spec.get('priorityClassName')}, {spec.get('preemptionPolicy')}"


def merged(base: Any, patch: Any) -> Any:
    """A JSON merge patch (RFC 7396), but that nothing is taken away."""
    if not isinstance(base, dict) or not isinstance(patch, dict):
        return patch
    return base | {key: merged(base.get(key), value) for key, value in patch.items()}
