"""The path of one review through the code stays short enough to read: as a reader would walk it, file by file."""

import ast
import asyncio
import sys
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any

import webhook
from tests.builders import a_job, a_pod
from tests.builders.world import World
from webhook.admission import review

ROOT = Path(webhook.__file__).parent
MOST_FILES = 25


def files_that_run(world: World, body: bytes) -> Counter[str]:
    """Calls by file of webhook/, from an AdmissionReview's bytes to the answer's."""
    calls: Counter[str] = Counter()

    def on_call(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(str(ROOT)):
            calls[str(Path(frame.f_code.co_filename).relative_to(ROOT))] += 1

    async def once() -> None:
        sys.setprofile(on_call)
        try:
            await world.webhooks.mutate(review.decode(body))
        finally:
            sys.setprofile(None)

    asyncio.run(once())
    return calls


def test_a_mutation_of_a_jobs_pod_runs_through_few_files() -> None:
    job = a_job(name="train-ranker")
    pod = a_pod().running("torchrun", "train.py").asking().of_tier("gpu-training").owned_by(job)
    pod = pod.annotated({"gpu-tiers.dev/checkpoint": "file"})
    world = World(job)
    body = world.body(world.sent(pod))
    files_that_run(world, body)  # once before: what is kept of the Job is kept then, as for its first pod
    calls = files_that_run(world, body)
    assert "policy/decide.py" in calls
    assert "policy/checkpoint/hook_plan.py" in calls, "the pod gets a hook"
    assert len(calls) <= MOST_FILES, sorted(calls)


def test_three_hops_lead_from_mutate_to_the_table_of_steps() -> None:
    """admission/pods.py:mutate -> decide_pod -> assign -> STEPS, each named in the file of the one before."""
    hops = [
        ("admission/pods.py", "decide_pod"),
        ("policy/decide.py", "assign"),
        ("policy/assignment/steps.py", "STEPS"),
    ]
    for file, name in hops:
        tree = ast.parse((ROOT / file).read_text())
        used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        assert name in used, f"{file} names {name}"
