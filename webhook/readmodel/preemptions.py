"""Preemptions: which pod was evicted for which, their tiers and tenants, and whether what was evicted has saved."""

from webhook.policy.checkpoint.outcome import Outcome
from webhook.readmodel.shown import Shown

EVENT = "PreemptionOutcome"
"""The reason of the events that tell of them, on the victims' workloads."""
MOST_PREEMPTIONS = 1000
"""Preemptions that are remembered; the oldest goes first."""


class PodShown(Shown, frozen=True):
    """A pod as it was: `tier` and `tenant` are "" where it has none, `gpus` in GPUs as Kubernetes writes quantities."""

    namespace: str
    name: str
    uid: str
    tier: str = ""
    tenant: str = ""
    gpus: str = "0"

    def __str__(self) -> str:
        told = [self.tier or "no tier", *([f"tenant {self.tenant}"] if self.tenant else [])]
        return f"{self.namespace}/{self.name} ({', '.join(told)})"


class Preemption(Shown, frozen=True):
    """One eviction by the scheduler. `time` in RFC 3339; `seconds` from then to the end of the pod's containers."""

    time: str
    node: str
    victim: PodShown
    preemptor: PodShown | None
    saved: str
    save_seconds: int | None = None
    seconds: float | None = None
    words: str = ""

    @property
    def sentence(self) -> str:
        """What its user reads."""
        by = f"for {self.preemptor}" if self.preemptor else "for a pod without GPUs, a PodGroup, or a pod that is gone"
        took = f", and ended after {self.seconds:.0f} s" if self.seconds is not None else ""
        return f"{self.victim} was evicted from {self.node} {by}; {self.words}{took}"


def preemption_of(
    time: str, node: str, victim: PodShown, preemptor: PodShown | None, outcome: Outcome, seconds: float | None
) -> Preemption:
    """What is told of an eviction."""
    return Preemption(time, node, victim, preemptor, outcome.saved, outcome.seconds, seconds, str(outcome))
