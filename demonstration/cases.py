"""The cases of the demonstration: what is created in each, and why it ends as it does."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from demonstration import programs
from demonstration.frameworks import FRAMEWORKS, stock
from localcluster.node import NodeCluster

CLASSES = {"low": 1, "high": 2}
NO_HOOK = {"gpu-tiers.dev/checkpoint": "none"}
LISTEN = {"gpu-tiers.dev/checkpoint": "listen", "gpu-tiers.dev/checkpoint-timeout": "30"}
HOOK = {"gpu-tiers.dev/checkpoint": "file", "gpu-tiers.dev/checkpoint-timeout": "30"}
GRACE = 40
"""What 30 seconds to save and the policy's margin of 10 make of a pod's grace period."""


@dataclass(frozen=True)
class Case:
    """A training Job and the critical pod that takes its GPUs; both by the arguments of `gpu_pod`."""

    letter: str
    title: str
    shell: str
    """The container's command; what it prints goes to /data/steps."""
    training: Mapping[str, Any]
    critical: Mapping[str, Any]
    because: str
    annotations: Mapping[str, str] = field(default_factory=dict)
    checkpoints: str = "state.json"
    """Where they lie in /data."""
    undisturbed: str = ""
    """The command of a run to compare with, where a run has an end."""
    drawn: bool = True
    """In the picture as well."""

    @property
    def name(self) -> str:
        """Letter and title, as they are shown."""
        return f"({self.letter}) {self.title}"

    @property
    def needs_frameworks(self) -> bool:
        """True if the case runs a program with torch."""
        return FRAMEWORKS in self.shell


WITHOUT = Case(
    "a",
    "no gpu-tiers, interval checkpoints",
    "exec python3 /code/interval_only.py",
    {"priorityClassName": "low"},
    {"priorityClassName": "high"},
    "Nobody asks it to save, and as PID 1 it never hears SIGTERM: it trains on until it is killed, and what it did "
    "since its last checkpoint is lost.",
)
ENDS = Case(
    "b",
    "hook, the process ends after saving",
    programs.ENDS,
    {"tier": "gpu-batch"},
    {"tier": "gpu-serving"},
    "The hook asks, it saves and exits with 143: the GPUs are free as soon as nothing can be lost any more.",
    HOOK,
)
TRAINS_ON = Case(
    "c",
    "hook, the process ignores SIGTERM",
    "exec python3 /code/trains_on.py",
    {"tier": "gpu-batch"},
    {"tier": "gpu-serving"},
    f"It saves as fast as (b), but neither ends nor hears SIGTERM, so that the critical pod waits until its {GRACE} s "
    "of grace are over and it is killed.",
    HOOK,
)
HUGGING_FACE = Case(
    "d",
    "Hugging Face Trainer as it is, hook of kind listen",
    stock("stock_huggingface.py", programs.STEP_SECONDS),
    {"tier": "gpu-batch"},
    {"tier": "gpu-serving"},
    "The listener saves at the end of a step, ends the program with 143, and has the next one begin there.",
    LISTEN,
    "out/checkpoint-*/trainer_state.json",
    stock("stock_huggingface.py", 0),
)
LIGHTNING = replace(
    HUGGING_FACE,
    letter="e",
    title="Lightning as it is, hook of kind listen",
    shell=stock("stock_lightning.py", programs.STEP_SECONDS),
    because="The same, with Lightning's Trainer.",
    checkpoints="out/**/*.ckpt",
    undisturbed=stock("stock_lightning.py", 0),
)
HUGGING_FACE_ALONE = replace(
    HUGGING_FACE,
    letter="f",
    title="the program of (d), no hook",
    because="It writes interval checkpoints and does not look for them: its next pod starts from the beginning.",
    annotations=NO_HOOK,
    undisturbed="",
    drawn=False,
)
LIGHTNING_ALONE = replace(
    LIGHTNING,
    letter="g",
    title="the program of (e), no hook",
    because="Lightning ends at SIGTERM with 0 and without a save: the Job is Complete, and its training is not.",
    annotations=NO_HOOK,
    undisturbed="",
    drawn=False,
)
LISTENED = (HUGGING_FACE, LIGHTNING)
CASES = (WITHOUT, ENDS, TRAINS_ON, *LISTENED, HUGGING_FACE_ALONE, LIGHTNING_ALONE)
HOW_TO_AVOID_IT = (
    "To avoid that wait, let the program exit with 143 once it has saved, as gpu_tiers_checkpoint.py does, and start "
    "it with `exec` where a shell comes first."
)


@contextmanager
def plain_priorities(node: NodeCluster) -> Iterator[None]:
    """Create two PriorityClasses, as clusters without gpu-tiers have; delete them after a block that succeeds."""
    head = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
    items = [{**head, "metadata": {"name": name}, "value": value} for name, value in CLASSES.items()]
    node.apply(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    yield
    node.kubectl("delete", "priorityclass", *CLASSES)
