"""One preemption, measured: a Job trains on all GPUs, a critical pod takes them, goes, and the Job trains on."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from localcluster.node import NodeCluster
from localcluster.waiting import wait_until

from .conftest import GPUS
from .steps import last_step, starts
from .watching import Watched, reasons
from .workloads import CRITICAL, create, gpu_pod, keeping_data, publish_code, training_job

STEPS_BEFORE = 20
"""The critical pod comes once the run has made so many."""
SECONDS = 120
SAVE_EVERY = 100
STEP_SECONDS = 0.1

INTERVAL_ONLY = f"""\
import json, time, train
state = train.resumed()
print(json.dumps({{"resumed": state["step"]}}), flush=True)
while True:
    time.sleep({STEP_SECONDS})
    state = train.after_a_step(state)
    print(json.dumps(state), flush=True)
    if state["step"] % {SAVE_EVERY} == 0:
        train.save(state)
"""
"""A run that knows nothing of a hook and nothing of SIGTERM."""

TRAINS_ON = f"""\
import json, time, train
from gpu_tiers_checkpoint import FOLDER
state = train.resumed()
print(json.dumps({{"resumed": state["step"]}}), flush=True)
(FOLDER / "listening").touch()
while True:
    time.sleep({STEP_SECONDS})
    state = train.after_a_step(state)
    print(json.dumps(state), flush=True)
    if (FOLDER / "request").exists():
        train.save(state)
        (FOLDER / "done").touch()
"""
"""A run that saves when asked, and neither ends nor hears SIGTERM."""


@dataclass(frozen=True)
class Outcome:
    """What a preemption cost."""

    steps_lost: int
    seconds_to_critical: float
    exit_codes: set[int]
    disruptions: set[str]
    events: list[str]
    pods_of_the_job: int


def preempt(
    node: NodeCluster,
    namespace: str,
    folder: Path,
    program: str,
    *,
    annotations: Mapping[str, str],
    spec: Mapping[str, Any] = {},
    critical: Mapping[str, Any] = {},
) -> Outcome:
    """Run it with the program /code/<program>; `spec` and `critical` are further fields of the two pods."""
    publish_code(node, namespace, **{"interval_only.py": INTERVAL_ONLY, "trains_on.py": TRAINS_ON})
    watched = Watched(node, namespace)
    shell = f"export STEPS=1000000 STEP_SECONDS={STEP_SECONDS}; exec python3 /code/{program} >> /data/steps"
    pod = keeping_data(gpu_pod("unused", "sh", "-c", shell, gpus=GPUS, tier=_tier(spec, "gpu-batch"), **spec), folder)
    try:
        create(node, namespace, training_job(pod, dict(annotations)))
        wait_until(lambda: last_step(folder) >= STEPS_BEFORE, SECONDS, f"{STEPS_BEFORE} steps of training")
        victim = node.kubectl("get", "pods", f"--namespace={namespace}", "--output=json").json()["items"][0]
        seconds = _take_the_gpus(node, namespace, folder, critical)
        reached = last_step(folder)
        node.kubectl("delete", "pod", "critical", f"--namespace={namespace}")
        wait_until(lambda: len(starts(folder)) > 1, SECONDS, "the Job's next pod")
        uid = victim["metadata"]["uid"]
        return Outcome(
            steps_lost=reached - starts(folder)[1],
            seconds_to_critical=seconds,
            exit_codes=watched.exit_codes(uid),
            disruptions=watched.disruptions(uid),
            events=reasons(node, namespace, uid),
            pods_of_the_job=len(starts(folder)),
        )
    finally:
        watched.end()


def _take_the_gpus(node: NodeCluster, namespace: str, folder: Path, spec: Mapping[str, Any]) -> float:
    """Create the critical pod; return the seconds until its program ran."""
    command = ("python3", "-c", CRITICAL)
    pod = keeping_data(gpu_pod("critical", *command, gpus=GPUS, tier=_tier(spec, "gpu-serving"), **spec), folder)
    since = time.time()
    create(node, namespace, pod)
    started = folder / "critical"
    wait_until(lambda: started.exists() and bool(started.read_text()), SECONDS, "the critical pod")
    return float(started.read_text()) - since


def _tier(spec: Mapping[str, Any], tier: str) -> str | None:
    """A pod that names its class itself carries no tier label."""
    return None if "priorityClassName" in spec else tier
