"""Many preemptions in a row: each time a pod of the tier that evicted has the devices when the last victim has ended.

Several run at a time, each on two nodes of four devices: by a pod that wants one device, or four, or by a gang of two
pods that want four each. Fresh pods of a low tier with all sorts of grace periods want each device that is free.
"""

import os
import random
import statistics
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import inf

import pytest

from localcluster.for_tests import announce

from .busy_devices import Busy, seconds_until
from .test_device_preemption import busy

pytestmark = [pytest.mark.apiserver, pytest.mark.release]

__all__ = ["busy"]

PREEMPTIONS = int(os.environ.get("PREEMPTIONS", "50"))
AT_A_TIME = 5
DEVICES = 4
WORKS = 2.0
"""Seconds for which a pod has its devices. One that is gone at once could have been cancelled, and has others wait."""
BACK_OFF = 11.0
"""Seconds after which kube-scheduler has tried the pod again at the latest: once a second it takes pods out of their
back-off of 10 s."""
ENDED = ("Succeeded", "Failed")
JOB = "batch.kubernetes.io/job-name"


@dataclass
class Lives:
    """The node of each pod, since when and until when it runs there, and the pods of each Job.

    Fresh pods may have a `namespace` of their own.
    """

    busy: Busy
    namespace: str
    on: dict[str, tuple[str, float]] = field(default_factory=dict)
    until: dict[str, float] = field(default_factory=dict)
    of: dict[str, list[str]] = field(default_factory=dict)

    @contextmanager
    def followed(self) -> Iterator[None]:
        over = threading.Event()
        task = threading.Thread(target=self._follow, args=(over,))
        task.start()
        try:
            yield
        finally:
            over.set()
            task.join()

    def _follow(self, over: threading.Event) -> None:
        while not over.wait(0.05):
            now, there = time.monotonic(), set[str]()
            namespaces = {self.busy.namespace, self.namespace or self.busy.namespace}
            for pod in [pod for each in namespaces for pod in self.busy.installed.api.get("pods", each)["items"]]:
                name, node = pod["metadata"]["name"], pod["spec"].get("nodeName", "")
                if node and pod["status"].get("phase") not in ENDED:
                    if name not in self.on:
                        self.on[name] = node, now
                        self.of.setdefault(pod["metadata"].get("labels", {}).get(JOB, ""), []).append(name)
                    there.add(name)
            for name in self.on.keys() - self.until.keys() - there:
                self.until[name] = now

    def seconds_to_bind(self, job: str) -> float:
        """Return the seconds from the end of the last pod on its nodes until the last pod of a Job had its node."""
        names = self.of[job]
        bound, nodes = max(self.on[name][1] for name in names), {self.on[name][0] for name in names}
        ended = [until for name, until in self.until.items() if self.on[name][0] in nodes and until < bound + 0.2]
        return bound - max(ended)


@dataclass
class Lane:
    """Two nodes on which one preemption follows the other."""

    busy: Busy
    lives: Lives
    number: int
    chance: random.Random
    seconds: list[float] = field(default_factory=list)

    @property
    def nodes(self) -> tuple[str, str]:
        return f"a{self.number}", f"b{self.number}"

    def is_full(self) -> bool:
        nodes = [self.busy.node(each) for each in self.nodes]
        held = [name for name, (node, _) in self.lives.on.items() if node in nodes and name not in self.lives.until]
        return len(held) == len(nodes) * DEVICES

    def preempt(self, name: str, within: float) -> None:
        seconds_until(self.is_full, 60)
        pods, gpus = self.chance.choice(((1, 1), (1, DEVICES), (2, DEVICES)))
        selector = {"team": self.busy.namespace, "lane": str(self.number)}
        self.busy.create(self.busy.job(name, "gpu-training", gpus, pods=pods, nodeSelector=selector))
        try:
            seconds_until(lambda: len(self.lives.of.get(name, ())) == pods, within)
            self.seconds.append(self.lives.seconds_to_bind(name))
        except AssertionError:
            self.seconds.append(inf)
        time.sleep(WORKS)
        self.busy.installed.api.delete(f"job/{name}", namespace=self.busy.namespace)


def in_a_row(busy: Busy, number: int, within: float, namespace: str = "", **fresh: object) -> list[float]:
    """Return the seconds of so many preemptions; infinity for one that does not succeed."""
    lives, chance = Lives(busy, namespace), random.Random(number)  # noqa: S311
    lanes = [Lane(busy, lives, each, random.Random(each)) for each in range(AT_A_TIME)]  # noqa: S311
    for lane in lanes:
        busy.add_nodes(*lane.nodes, devices=DEVICES, lane=str(lane.number))
    left = iter(range(number))

    def run(lane: Lane) -> None:
        for each in left:
            lane.preempt(f"high-{each}", within)

    busy.fill(AT_A_TIME * 2 * DEVICES, lambda: chance.randint(1, 30))
    unrest = busy.unrest(grace=lambda: chance.randint(1, 30), namespace=namespace, **fresh)
    with lives.followed(), unrest, ThreadPoolExecutor(AT_A_TIME) as pool:
        list(pool.map(run, lanes))
    return [each for lane in lanes for each in lane.seconds]


def test_a_pod_of_its_tier_has_the_devices_soon(busy: Busy, pytestconfig: pytest.Config) -> None:
    seconds = in_a_row(busy, PREEMPTIONS, 120)
    announce(pytestconfig, f"{len(seconds)} preemptions: median {statistics.median(seconds):.2f} s, {sorted(seconds)}")
    assert max(seconds) < BACK_OFF


def test_without_the_reservation_it_does_not(busy: Busy, pytestconfig: pytest.Config) -> None:
    """The fresh pods tolerate every taint, in a namespace that is exempt, so the reservation keeps none of them off.

    Nobody evicts them there, so the first preemptions alone show it.
    """
    seconds = in_a_row(busy, 5, 40, tolerations=[{"operator": "Exists"}], namespace="kube-system")
    announce(pytestconfig, f"without a reservation {sum(each > BACK_OFF for each in seconds)} of {len(seconds)} fail")
    assert max(seconds) == inf
