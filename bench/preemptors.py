"""The time of the leader's rounds while thousands of pods wait for devices of DRA and fit nowhere.

`python bench/preemptors.py`. All need the same, or each something else: what is judged once for all, and what is not.
"""

import time
from collections.abc import Callable

from tests.builders.dra_cluster import NOW
from tests.builders.simulated_preemption import Case, Simulated, judged, leading, one_round
from webhook.controllers import device_preemption
from webhook.policy.preemption.cluster_state import ClusterState
from webhook.policy.preemption.pod_state import PodState

NODES, DEVICES, PODS = 500, 8, 5000
ROUNDS = 20


class Crowded(Simulated):
    """A cluster that does not change, and in which nothing may be written. Its clock is the real one."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._began = time.monotonic()

    def settle(self) -> None:
        """Freeze the state of the cluster, for `waiting` and `state`."""
        self._settled = self.cluster.state()

    @property
    def now(self) -> float:
        return NOW + time.monotonic() - self._began

    def waiting(self) -> list[PodState]:
        return [each for each in self._settled.pods.values() if each.waits_since is not None]

    def state(self, *_: object) -> Callable[[], ClusterState]:
        return lambda: self._settled


def main() -> None:
    """Print the table."""
    print(f"{PODS} pods that fit none of {NODES} nodes of {DEVICES} devices\n")
    print(f"| they need | judged in one round | in {ROUNDS} | seconds of the longest round | of all time, judging |")
    print("|---|---|---|---|---|")
    for need, selector in (("the same", ""), ("each something else", "example.com/only")):
        crowded = Crowded(Case((DEVICES,) * NODES, (30,) * NODES * DEVICES, (), 0))
        for number in range(PODS):
            only = {"nodeSelector": {selector: str(number)}} if selector else {}
            crowded.cluster.waiting(f"high-{number}", gpus=DEVICES + 1, **only)
        crowded.settle()
        with leading(crowded) as leader:
            began, longest, busy, first = time.monotonic(), 0.0, 0.0, 0
            for number in range(ROUNDS):
                before = time.monotonic()
                one_round(leader, crowded)
                spent = time.monotonic() - before
                longest, busy = max(longest, spent), busy + spent
                first = judged(leader) if number == 0 else first
                time.sleep(device_preemption.ROUND)
        share = busy / (time.monotonic() - began)
        print(f"| {need} | {first} | {judged(leader)} | {longest:.2f} | {share:.0%} |")


if __name__ == "__main__":
    main()
