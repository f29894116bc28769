"""The recent verdicts and preemptions of a replica, with the saves of the victims, and the mark of a replica.

The mark is a warning with the replica's state, for the dry run of `gpu-tiers check`. A replica adds it in every mode,
also to a refusal, and never to the answer for a create that is no dry run.
"""

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, Self

import msgspec

from webhook.policy.checkpoint.work_lost import Outcome, Work, summed
from webhook.report.shown import Shown

MOST_VERDICTS = 500
"""The most groups of verdicts that are stored; the group whose last verdict is oldest is dropped first."""


class VerdictShown(Shown, frozen=True):
    """A verdict. `outcome` is one of: admitted, queued, refused, would be refused, try again.

    `why` is the refusal's sentence, or the annotation assigned-by and a warning of demoted pods. `time` is in seconds
    since 1970. `workload` is the outermost owner, or else the controller or the object itself. `reason` is that of the
    refusal, also in Warn and Audit; "" without a refusal.
    """

    time: float
    kind: str
    namespace: str
    name: str
    outcome: str
    tier: str
    tenant: str
    why: str
    trace: tuple[str, ...] = ()
    workload: str = ""
    reason: str = ""


class VerdictGroup(Shown, frozen=True):
    """Like verdicts on a workload's objects. `since`: when the first was given, in seconds since 1970."""

    last: VerdictShown
    times: int
    since: float


class VerdictGroups:
    """The latest verdicts by workload, outcome, tier and refusal, so that retries do not fill the list."""

    def __init__(self, most: int = MOST_VERDICTS) -> None:
        self._most = most
        self._groups: OrderedDict[tuple[str, ...], VerdictGroup] = OrderedDict()

    def add(self, new: VerdictShown) -> None:
        """Add a verdict."""
        key = new.namespace, new.workload, new.outcome, new.tier, new.reason
        before = self._groups.pop(key, None)
        self._groups[key] = VerdictGroup(new, before.times + 1 if before else 1, before.since if before else new.time)
        if len(self._groups) > self._most:
            self._groups.popitem(last=False)

    def __iter__(self) -> Iterator[VerdictGroup]:
        """Yield the groups, the latest first."""
        return reversed(self._groups.values())


EVENT = "PreemptionOutcome"
"""The reason of the events about preemptions, on the victims' workloads."""
MOST_PREEMPTIONS = 1000
"""The most preemptions that are stored; the oldest is dropped first."""

NOT_KNOWN = ""
"""The value of `PodShown.gpus` for a pod that ended while no replica led. Its tier is unknown too."""


class PodShown(Shown, frozen=True):
    """A pod as it was: `tier` and `tenant` are "" for none, `gpus` in GPUs as Kubernetes writes quantities.

    `hook` is the kind of hook by which it saves, as far as the pod shows it; "" if the pod was not read. `flavor` is
    the flavor of its GPUs, "" if unknown.
    """

    namespace: str
    name: str
    uid: str
    tier: str = ""
    tenant: str = ""
    gpus: str = "0"
    hook: str = ""
    flavor: str = ""

    def __str__(self) -> str:
        no_tier = "tier not known" if self.gpus == NOT_KNOWN else "no tier"
        parts = [self.tier or no_tier, *([f"tenant {self.tenant}"] if self.tenant else [])]
        return f"{self.namespace}/{self.name} ({', '.join(parts)})"


class Preemption(Shown, frozen=True):
    """One eviction by the scheduler. `time` in RFC 3339; `seconds` from then to the end of the pod's containers.

    `saved` is the outcome of the save, `words` say it in a sentence, and `save_seconds` is how long the save took, None
    if unknown. `lost` is the work since the last save; None if unknown, or if the victim had no work to lose.
    """

    time: str
    node: str
    victim: PodShown
    preemptor: PodShown | None
    saved: str
    save_seconds: int | None = None
    seconds: float | None = None
    words: str = ""
    lost: Work | None = None

    @property
    def sentence(self) -> str:
        by = f"for {self.preemptor}" if self.preemptor else "for a pod without GPUs, a PodGroup, or a pod that is gone"
        took = f"; it ended after {self.seconds:.0f} s" if self.seconds is not None else ""
        lost = f"; lost {self.lost}" if self.lost else ""
        return f"{self.victim} was evicted from {self.node} {by}; {self.words}{lost}{took}"


NOT_SAVED = ("not-saved", "nothing-listens")
"""The outcomes of pods that are known not to have saved."""


def saved_share(pods: int, saved: int, not_saved: int) -> str:
    """Return how many evicted pods saved, as a share of the pods whose outcome is known."""
    known = saved + not_saved
    share = f"{saved} of {known} saved ({saved / known:.0%})" if known else "0 saved"
    return f"{share}, {pods - known} unknown" if pods > known else share


class Evictions(Shown, frozen=True):
    """The number of shown evictions, how many pods are known to have saved or not, and the known loss of work."""

    pods: int
    saved: int
    not_saved: int
    lost: Work | None

    @classmethod
    def of(cls, found: Sequence[Preemption]) -> Self:
        lost = [each.lost for each in found if each.lost]
        saved, not_saved = (sum(each.saved in names for each in found) for names in (("saved",), NOT_SAVED))
        return cls(len(found), saved, not_saved, summed(lost) if lost else None)

    def __str__(self) -> str:
        lost = f", and lost {self.lost} of work" if self.lost else ""
        return f"{saved_share(self.pods, self.saved, self.not_saved)}{lost}"


def preemption_of(
    time: str,
    node: str,
    victim: PodShown,
    preemptor: PodShown | None,
    outcome: Outcome,
    seconds: float | None,
    lost: Work | None,
) -> Preemption:
    return Preemption(time, node, victim, preemptor, outcome.saved, outcome.seconds, seconds, str(outcome), lost)


ANNOTATION = "gpu-tiers.dev/check"
"""The annotation of a pod that asks for marks."""
_BEGIN = f"{ANNOTATION}: "
MOST_NAME = 63
"""The most characters of a replica's name, because the API server cuts a warning of more than 256."""


class ReplicaMark(msgspec.Struct, frozen=True):
    """The webhook and replica that answered, the digest of its active policy, and the age of its watches.

    `taken`: its policy file is active. `watches`: seconds since the most silent watch had an event. `certificate`: when
    its serving certificate expires, as a Unix time.
    """

    webhook: Literal["mutate", "validate"]
    replica: str
    policy: str
    taken: bool
    watches: int
    certificate: int

    def warning(self) -> str:
        return _BEGIN + msgspec.json.encode(self).decode()


def marks_in(warnings: Iterable[str]) -> Iterator[ReplicaMark]:
    for each in warnings:
        if each.startswith(_BEGIN):
            yield msgspec.json.decode(each.removeprefix(_BEGIN), type=ReplicaMark)
