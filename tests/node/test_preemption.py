"""The reason to install this: a preempted training run goes on where it stopped. Three runs, side by side."""

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from demonstration import cases
from demonstration.cases import ENDS, HOOK, LISTENED, Case, plain_priorities
from demonstration.preemption import Outcome, Preemption
from demonstration.programs import SAVE_EVERY
from localcluster.for_tests import announce
from localcluster.node import NodeCluster
from tests.frameworks.environments import torch_in_pods

from .questions import answer

pytestmark = pytest.mark.node

GRACE = 20
"""Shorter than the demonstration's, as two cases wait it out; half-way between two of their checkpoints."""
WITHOUT = replace(cases.WITHOUT, training=cases.WITHOUT.training | {"terminationGracePeriodSeconds": GRACE})
TRAINS_ON = replace(
    cases.TRAINS_ON,
    training=cases.TRAINS_ON.training | {"terminationGracePeriodSeconds": 1},
    annotations=HOOK | {"gpu-tiers.dev/checkpoint-timeout": str(GRACE - 10)},
)
"""The webhook makes its grace what the save may take, and the policy's margin of 10 s."""


class Run:
    """Runs a case in the test's namespace, and prints what happens."""

    def __init__(self, node: NodeCluster, namespace: str, data: Path, config: pytest.Config) -> None:
        self.node, self.namespace, self.data, self.config = node, namespace, data, config

    def __call__(self, case: Case) -> Outcome:
        def tell(line: str) -> None:
            announce(self.config, f"({case.letter}) {line}")

        return Preemption(self.node, self.namespace, self.data, case, tell).run()


@pytest.fixture
def run(node: NodeCluster, namespace: str, data: Path, pytestconfig: pytest.Config) -> Run:
    return Run(node, namespace, data, pytestconfig)


def messages(node: NodeCluster, namespace: str) -> list[str]:
    """Return the events of gpu-tiers about preempted pods on their workloads."""
    found = node.api.get("events", namespace, fieldSelector="reason=PreemptionOutcome")["items"]
    return [each["message"] for each in found]


@pytest.fixture
def priorities(node: NodeCluster) -> Iterator[None]:
    with plain_priorities(node):
        yield


@pytest.mark.usefixtures("priorities")
def test_without_gpu_tiers_the_run_falls_back_to_its_last_interval(run: Run) -> None:
    outcome = run(WITHOUT)
    times = outcome.figures.times
    assert 0 < outcome.figures.steps_lost <= SAVE_EVERY
    assert times.running > GRACE - 1, "as PID 1 it never heard SIGTERM, and its grace was waited out"
    assert times.hook is None
    assert outcome.exit_codes == {137}


@pytest.mark.usefixtures("release")
def test_with_the_hook_no_step_is_lost_and_no_grace_is_waited_out(run: Run) -> None:
    outcome = run(ENDS)
    times = outcome.figures.times
    assert outcome.figures.steps_lost == 0
    assert outcome.figures.resumed_at
    assert times.running < 15
    assert times.hook
    assert times.saved
    assert times.resumed
    assert 0 < times.hook <= times.saved <= times.gone <= times.running < times.ended < times.resumed
    assert outcome.exit_codes == {143}
    assert outcome.disruptions == {"PreemptionByScheduler"}
    assert "Preempted" in outcome.events
    (sentence,) = messages(run.node, run.namespace)
    assert re.search(
        r"\(gpu-batch\) was evicted from .*; it saved in \d+ s; lost \d+ GPU-seconds?; it ended after \d+ s$", sentence
    )
    victim = sentence.partition(" ")[0].rpartition("/")[2]
    assert f"It is gone: {sentence} (reported at " in answer(run.node, run.namespace, "why-pending", victim)


@pytest.mark.usefixtures("release")
def test_a_process_that_trains_on_after_the_save_costs_the_whole_grace(run: Run) -> None:
    outcome = run(TRAINS_ON)
    times = outcome.figures.times
    assert outcome.figures.steps_lost > 0, "what it does after its last checkpoint is lost"
    assert times.running > GRACE - 1
    assert times.saved
    assert times.saved < times.gone / 2, "it was not the save that took so long"
    assert outcome.exit_codes == {137}


@pytest.mark.release
@pytest.mark.timeout(3600)  # it may install torch
@pytest.mark.usefixtures("release")
@pytest.mark.parametrize("case", LISTENED, ids=["huggingface", "lightning"])
def test_a_program_that_knows_nothing_of_a_hook_loses_no_step(run: Run, case: Case) -> None:
    torch_in_pods()
    outcome = run(case)
    assert outcome.figures.steps_lost == 0
    assert outcome.figures.resumed_at
    assert outcome.figures.same, "to the last bit"
    assert outcome.exit_codes == {143}
