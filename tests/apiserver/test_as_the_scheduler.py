"""Random clusters whose GPUs come by DRA, each beside a twin whose GPUs a device plugin has: the same tiers run there.

In the twin kube-scheduler evicts by itself. Both have fresh pods of the lowest tier, and claims elsewhere come and go.
No tier above the lowest has fewer GPUs than in the twin. It may have more: with seed 17 the GPUs of one victim serve
two pods here, and in the twin another pod has to go.
"""

import os
import random
import time
from collections import Counter
from collections.abc import Iterator

import pytest

from localcluster.fake_nodes import node as fake_node
from localcluster.waiting import wait_until

from .busy_devices import Busy
from .conftest import new_namespace
from .installed import Installed

pytestmark = [pytest.mark.apiserver, pytest.mark.release]

SEEDS = range(int(os.environ.get("CLUSTERS", "3")))
TIERS = ("gpu-interactive", "gpu-batch", "gpu-serving", "gpu-training")
SETTLED = 90.0
"""Seconds in which the same tiers run in both."""
CALM = 10
"""Seconds for which that stays so. In the twin all is over then."""


class Twin(Busy):
    """The same nodes with a device plugin's GPUs."""

    by = "plugin"

    def add_nodes(self, *names: str, devices: int = 1) -> None:
        self.nodes += map(self.node, names)
        for each in map(self.node, names):
            self.installed.api.apply(fake_node(each, devices, {"team": self.namespace}))


@pytest.fixture
def both(preempting: Installed, namespace: str) -> Iterator[tuple[Busy, Twin]]:
    with new_namespace(preempting.cluster) as other:
        found = Busy(preempting, namespace), Twin(preempting, other)
        yield found
        for each in found:
            each.remove()


def run_there(cluster: Busy) -> Counter[str]:
    """How many GPUs pods of each tier have; of the lowest tier are also the fresh pods, so it is left out."""
    pods = cluster.installed.api.get("pods", cluster.namespace)["items"]
    bound = [each for each in pods if each["spec"].get("nodeName", "") in cluster.nodes]
    held: Counter[str] = Counter()
    for each in bound:
        if "deletionTimestamp" not in each["metadata"] and each["spec"]["priorityClassName"] != TIERS[0]:
            held[each["spec"]["priorityClassName"]] += int(each["metadata"]["labels"]["gpus"])
    return held


def has_as_much(dra: Busy, twin: Busy) -> bool:
    """Tell whether each tier has as many GPUs as in the twin, and goes on to have them."""
    for _ in range(CALM):
        here, there = run_there(dra), run_there(twin)
        if dra.reserved() or any(here[tier] < there[tier] for tier in TIERS):
            return False
        time.sleep(1)
    return True


def failures(cluster: Busy) -> float:
    return cluster.installed.metric("gpu_tiers_reservations_total", outcome="failed")


@pytest.mark.parametrize("seed", SEEDS)
def test_the_same_tiers_run_as_where_the_scheduler_evicts(both: tuple[Busy, Twin], seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311
    sizes = [chance.randint(1, 4) for _ in range(chance.randint(1, 3))]

    # 1. The same pods on the same nodes, all devices in use.
    running: list[tuple[str, int, str, int, int]] = []
    for node, size in enumerate(sizes):
        left = size
        while left:
            gpus = chance.choice([each for each in (1, 2, 4) if each <= left])
            left -= gpus
            running.append((f"n{node}-{left}", node, chance.choice(TIERS[1:]), gpus, chance.randint(1, 5)))
    guarded = [name for name, *_ in running if chance.random() < 0.2]
    waiting = [
        (f"high-{number}", chance.choice(TIERS[1:]), chance.choice((1, 1, 2))) for number in range(chance.randint(1, 3))
    ]
    for cluster in both:
        for node, size in enumerate(sizes):
            cluster.add_nodes(f"n{node}", devices=size)
        for name, node, tier, gpus, grace in running:
            at = {"nodeSelector": {"kubernetes.io/hostname": cluster.node(f"n{node}")}}
            pod = cluster.pod(name, tier, gpus, by=cluster.by, grace=grace)
            pod["spec"] |= at
            pod["metadata"]["labels"] |= {"gpus": str(gpus), "guarded": str(name in guarded)}
            cluster.create(pod)
        cluster.installed.eventually(lambda c=cluster: sum(run_there(c).values()) == sum(sizes), "all devices in use")
        cluster.installed.api.apply(
            {
                "apiVersion": "policy/v1",
                "kind": "PodDisruptionBudget",
                "metadata": {"name": "guarded", "namespace": cluster.namespace},
                "spec": {"maxUnavailable": 0, "selector": {"matchLabels": {"guarded": "True"}}},
            }
        )

    # 2. The same pods wait.
    dra, twin = both
    before = failures(dra)
    with dra.unrest(TIERS[0]), twin.unrest(TIERS[0], by=twin.by):
        for cluster in both:
            for name, tier, gpus in waiting:
                pod = cluster.pod(name, tier, gpus, by=cluster.by)
                pod["metadata"]["labels"]["gpus"] = str(gpus)
                cluster.create(pod)
        told = lambda: f"{sizes} {running} {guarded} {waiting}: {run_there(dra)} {run_there(twin)}"  # noqa: E731
        try:
            wait_until(lambda: has_as_much(dra, twin), SETTLED, "the same tiers")
        except TimeoutError:
            raise AssertionError(told()) from None
    assert failures(dra) == before, told()
