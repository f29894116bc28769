"""The path of one review through the code stays short enough to read: as a reader would walk it, file by file.

It is walked cold, with all that is kept forgotten, from the HTTP request to the answer's bytes. What is booked is
written into the ledger that replicas share.
"""

import ast
import asyncio
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import webhook
from tests.builders import Built, a_job, a_pod, a_tenant
from tests.builders.world import FakeApi
from tests.ledger.cluster import Cluster
from tests.ledger.simulated_api import TENANT_QUOTAS
from tests.ledger.virtual_time import VirtualLoop, pass_time
from webhook.admission.webhook import Webhooks
from webhook.policy.classification.classify import make_expressions
from webhook.policy.workloads.kind_table import BUILT_IN, KindTable
from webhook.server.endpoint import Callers, Limits, admission_app
from webhook.server.metrics import Metrics

ROOT = Path(webhook.__file__).parent
TENANT = {"example.com/tenant": "alpha"}
NAMESPACE = Built({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team-alpha", "labels": TENANT}})
ALPHA = a_tenant(quotas=[{"gpus": 64}], namespaceSelector={"matchLabels": TENANT})
TRAINING = a_pod().running("torchrun", "train.py").asking()
JOB = a_job(TRAINING, name="train-ranker")
POD = TRAINING.owned_by(JOB)
CASES = {
    "mutate of a Job's pod": ("/mutate", POD, [NAMESPACE, JOB], (37, 1063)),
    "validate of it": ("/validate", POD, [NAMESPACE, JOB], (45, 1389)),
    "validate of a Job": ("/validate", JOB, [NAMESPACE], (49, 1294)),
}
"""Each with the files and the lines that may run at most. Whoever makes a path shorter writes the new numbers here.

A pod whose sibling was decided a moment ago walks half of it (webhook/admission/reviewer.py:RecentDecisions).
"""


@dataclass
class Walked:
    """The lines of webhook/ that ran."""

    lines: set[tuple[str, int]] = field(default_factory=set)

    @property
    def files(self) -> list[str]:
        return sorted({file.removeprefix(f"{ROOT}/") for file, _ in self.lines})

    def on_call(self, frame: FrameType, event: str, _: Any) -> Any:
        if event != "call" or not frame.f_code.co_filename.startswith(str(ROOT)):
            return None
        return self.on_line(frame, event, _)

    def on_line(self, frame: FrameType, _event: str, _: Any) -> Any:
        self.lines.add((frame.f_code.co_filename, frame.f_lineno))
        return self.on_line


def forget_all() -> None:
    """Forget everything but what a process makes once, of its own tables."""
    for name, module in list(sys.modules.items()):
        for each in vars(module).values() if name.startswith("webhook.") else ():
            if hasattr(each, "cache_clear"):
                each.cache_clear()
    make_expressions()
    for name in (name for name, each in vars(KindTable).items() if isinstance(each, cached_property)):
        getattr(BUILT_IN, name)


async def walked(path: str, world: FakeApi, obj: object) -> tuple[Walked, Mapping[str, Any]]:
    """One review, and what is answered."""
    books = Cluster()
    books.api.make(TENANT_QUOTAS, {key: ALPHA.json()[key] for key in ("metadata", "spec")})
    books.namespace("team-alpha", "alpha")
    process = await books.process("p")
    process.lead(first=True)
    await pass_time(200)
    webhooks = Webhooks(world.cluster, process.ledger, lambda: world.policy, world.webhooks.record)
    app = admission_app(webhooks.mutate, webhooks.validate, Metrics(), Limits(), Callers())
    answers: list[Any] = []

    async def receive() -> dict[str, object]:
        return {"type": "http.request", "body": world.body(obj), "more_body": False}

    async def send(message: Any) -> None:
        answers.append(message)

    scope = {"type": "http", "method": "POST", "path": path, "raw_path": path.encode(), "query_string": b"timeout=10s"}
    found = Walked()
    forget_all()
    sys.settrace(found.on_call)
    try:
        await app({**scope, "headers": [(b"content-type", b"application/json")]}, receive, send)
    finally:
        sys.settrace(None)
        await books.end()
    return found, answers[1]["body"]


@pytest.mark.parametrize(("path", "obj", "there", "most"), CASES.values(), ids=CASES)
def test_a_cold_review_runs_through_few_files(path: str, obj: Any, there: list[Built], most: tuple[int, int]) -> None:
    world = FakeApi(*there, ALPHA)
    if path == "/validate" and obj is POD:
        obj = world.stored(asyncio.run(world.mutate(obj)).patched)
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        found, answer = runner.run(walked(path, world, obj))
    assert b'"allowed":true' in answer, answer
    files, lines = most
    assert len(found.files) <= files, found.files
    assert len(found.lines) <= lines


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
