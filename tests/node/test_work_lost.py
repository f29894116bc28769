"""The reported cost of preemptions next to what the pods themselves know: with reports, and without."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from demonstration.preemption import GPUS
from demonstration.programs import CRITICAL
from demonstration.workloads import Tree, create, gpu_pod, keeping_data
from localcluster.for_tests import announce
from localcluster.node import NodeCluster
from localcluster.waiting import wait_until

from .hooked_pods import HOOK
from .questions import metric
from .test_preemption import messages
from .together import SECONDS, publish_programs

pytestmark = [pytest.mark.node, pytest.mark.usefixtures("release")]

REPORT_SECONDS = 6
"""How often a pod reports here, instead of each 30 s. What it saves after a report counts as lost."""
ROUNDED = 2
"""A kubelet tells of times in whole seconds, and a program notes its end a moment before it."""
HOOK_SECONDS = "8"
"""What the hook waits for a save that does not come."""


@dataclass(frozen=True)
class Victim:
    """A training, named after the receiver of its reports; each of another tier, which the metric distinguishes."""

    name: str
    tier: str
    gpus: int
    annotations: dict[str, str]
    since: str = "saved"
    """What it did in its record when that began which is told to be lost."""
    unreported: int = REPORT_SECONDS

    def pod(self, folder: Path) -> Tree:
        begin = f'echo "began $(date +%s.%N)" > /data/record; exec python3 /code/train_and_save.py {self.name}'
        pod = gpu_pod(
            self.name,
            *("sh", "-c", f"{begin} {REPORT_SECONDS}"),
            gpus=self.gpus,
            tier=self.tier,
            annotations=dict(self.annotations),
            terminationGracePeriodSeconds=1,
        )
        return keeping_data(pod, folder)


VICTIMS = (
    Victim("listen", "gpu-serving", 2, {HOOK: "listen", f"{HOOK}-timeout": HOOK_SECONDS}),
    Victim("file", "gpu-batch", 1, {HOOK: "file", f"{HOOK}-timeout": HOOK_SECONDS, f"{HOOK}-reports": "true"}),
    Victim("nobody", "gpu-interactive", 1, {HOOK: "none"}, since="began", unreported=0),
)


class Record:
    """The record that a program wrote of what it did when."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "record"

    def last(self, what: str) -> float:
        """Return the time at which it did that last; 0 where it did not yet."""
        lines = self._file.read_text().splitlines() if self._file.exists() else []
        return max((float(at) for did, at in map(str.split, lines) if did == what), default=0.0)

    def seconds(self, since: str, until: str) -> float:
        return self.last(until) - self.last(since)


def lost(node: NodeCluster, tier: str) -> float:
    return metric(node, "gpu_tiers_lost_gpu_seconds_total", victim_tier=tier, preemptor_tier="gpu-training")


def test_what_is_reported_to_be_lost_is_what_the_pods_know_of_it(
    node: NodeCluster, namespace: str, data: Path, pytestconfig: pytest.Config
) -> None:
    publish_programs(node, namespace)
    before = {each.name: lost(node, each.tier) for each in VICTIMS}
    records = {}
    for each in VICTIMS:
        folder = data / each.name
        folder.mkdir()
        create(node, namespace, each.pod(folder))
        records[each.name] = Record(folder)
    long_enough = 4 * REPORT_SECONDS
    wait_until(
        lambda: all(each.seconds("began", "saved") > long_enough for each in records.values()), SECONDS, "reports"
    )
    critical = gpu_pod("critical", "python3", "-c", CRITICAL, gpus=GPUS, tier="gpu-training")
    create(node, namespace, keeping_data(critical, data))
    wait_until(lambda: len(messages(node, namespace)) == len(VICTIMS), SECONDS, "what became of each")
    for each in VICTIMS:
        record = records[each.name]
        seconds = (lost(node, each.tier) - before[each.name]) / each.gpus
        counted = record.seconds(each.since, "ended")
        announce(pytestconfig, f"lost ({each.name}): {seconds:.1f} s of each GPU told, {counted:.1f} s counted")
        assert -ROUNDED < seconds - counted < each.unreported + ROUNDED, each.name
        (sentence,) = [said for said in messages(node, namespace) if f"/{each.name} " in said]
        assert ("; lost at most " in sentence) == (each.name == "nobody"), sentence
        assert record.seconds("saved", "ended") < long_enough, "what it lost is less than what it has done"
