"""The reason why no pod runs: what a pod itself waits for, and refused pods of a controller, by its events."""

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Literal

from webhook.kube.client import RFC_3339
from webhook.kube.errors import without_secret
from webhook.objects.pods import QUOTA_GATE
from webhook.objects.view import Tree, at, mapped
from webhook.report.pending import Room
from webhook.report.shown import Shown

FAILED_CREATES = ("FailedCreate", "FailedCreatePod", "FailedToCreateHeadPod", "FailedToCreateWorkerPod")
"""The reasons of controllers' events on a refused pod: the first of Kubernetes' own controllers and most others, the
second of the training operator, and the last two of KubeRay."""
REASONS = (*FAILED_CREATES, "OverQuota", "Refused")
"""The reasons of refusals; the last two are gpu-tiers' own."""
UPDATE_REFUSED = "UpdateRefused"
"""The reason of a refused update, which leaves the object as it is."""

LONGEST_WAIT: Mapping[str, timedelta] = MappingProxyType({"Job": timedelta(minutes=1)})
ANY_LONGEST_WAIT = timedelta(seconds=1000)
"""The longest wait between two tries of a controller of another kind (docs/quota.md#when-controllers-retry)."""
SHORTEST_WAIT = timedelta(seconds=1)
AT_ONCE = timedelta(minutes=1)
"""The time within which events of a controller and gpu-tiers are about the same: the controller's own sentence counts.
"""

_OURS = 'gpu-tiers.dev" denied'
_DENIED = " denied the request: "
_OF_RESOURCE_QUOTA = " is forbidden: exceeded quota: "
_UNREACHED = re.compile(r'failed calling webhook "[^"]{1,253}\.gpu-tiers\.dev"')


class RefusedPods(Shown, frozen=True):
    """The last refusal that a controller got. `times` and `since` also count its earlier events of the same reason.

    `tries_again` is the latest time of its next try. `ours`: gpu-tiers refused it, not a ResourceQuota or another
    webhook. `unreached`: the API server refused it, because gpu-tiers did not answer.
    """

    controller: str
    sentence: str
    times: int
    since: datetime
    last: datetime
    tries_again: datetime
    ours: bool = True
    unreached: bool = False

    @property
    def of_resource_quota(self) -> bool:
        return not self.ours and _OF_RESOURCE_QUOTA in self.sentence

    @property
    def controller_kind(self) -> str:
        return self.controller.partition("/")[0]

    def said(self, now: datetime) -> str:
        often = "once," if self.times == 1 else f"{self.times} times, the last time"
        last_refusal = f"{self.controller} was refused {often} {long_time(now - self.last)} ago."
        if self.tries_again <= now:
            return f"{last_refusal} It may try again at any moment."
        return f"{last_refusal} It tries again by itself, within {long_time(self.tries_again - now)} or so."


def refused_pods(events: Iterable[Tree], created: Mapping[str, datetime] | None = None) -> RefusedPods | None:
    """Return the newest refusal in these events; None if there is none.

    Controllers double the wait after each try, so the next wait is about as long as all waits since a pod was admitted.
    `created` is when the newest pod was created, by the uid of its controller.
    """
    found: list[tuple[datetime, datetime, Tree]] = []
    for each in events:
        reported = reported_at(each)
        if each.get("reason") in REASONS and reported is not None:
            found.append((reported, _time(each.get("firstTimestamp") or each.get("eventTime")) or reported, each))
    found.sort(key=lambda each: each[0])
    if not found:
        return None
    newest = [each for each in found if found[-1][0] - each[0] <= AT_ONCE]
    last, _, event = next((each for each in reversed(newest) if each[2].get("reason") in FAILED_CREATES), found[-1])
    about = event.get("involvedObject") or {}
    # An object has a separate event for each different message.
    alike = [each for each in found if _sort(each[2]) == _sort(event)]
    first = min(each[1] for each in alike)
    let_in = (created or {}).get(about.get("uid", ""), first)
    waits_since = max(first, let_in) if let_in <= last else first
    longest = LONGEST_WAIT.get(about.get("kind", ""), ANY_LONGEST_WAIT)
    message = str(event.get("message") or "")
    return RefusedPods(
        controller=f"{about.get('kind')}/{about.get('name')}",
        sentence=without_secret(message.partition(_DENIED)[2] or message),
        times=sum(_count(each[2]) for each in alike),
        since=first,
        last=last,
        tries_again=last + min(max(last - waits_since, SHORTEST_WAIT), longest),
        ours=event.get("reason") not in FAILED_CREATES or _OURS in message,
        unreached=tells_of_an_outage(message),
    )


def tells_of_an_outage(message: str) -> bool:
    """Tell whether the API server refused something because gpu-tiers did not answer it."""
    return _UNREACHED.search(message) is not None


def _sort(event: Tree) -> tuple[object, ...]:
    return (event.get("reason"), *(at(event, f"involvedObject.{name}") for name in ("kind", "name", "uid")))


def reported_at(event: Tree) -> datetime | None:
    """Return when an Event was last reported; None if it does not say."""
    series = event.get("series") or {}
    return _time(series.get("lastObservedTime") or event.get("lastTimestamp") or event.get("eventTime"))


def _count(event: Tree) -> int:
    counted = (event.get("series") or {}).get("count") or event.get("count")
    return counted if isinstance(counted, int) else 1


def _time(text: object) -> datetime | None:
    try:
        found = datetime.fromisoformat(str(text))
    except ValueError:
        return None
    return found if found.tzinfo else None


def long_time(time: timedelta) -> str:
    """Return text such as: 40 seconds, 3 minutes, 5 hours."""
    seconds = max(round(time.total_seconds()), 1)
    units = ((2, 86400, "day"), (2, 3600, "hour"), (2, 60, "minute"), (1, 1, "second"))
    size, unit = next((size, unit) for least, size, unit in units if seconds >= least * size)
    number = round(seconds / size)
    return f"{number} {unit}{'s' if number > 1 else ''}"


class Eviction(Shown, frozen=True):
    """An eviction reported by gpu-tiers, once its outcome was known, or else by the scheduler.

    `number` is how many evictions are reported of this object; this is the last one.
    """

    at: datetime
    sentence: str
    number: int = 1

    def __str__(self) -> str:
        others = f", the last of {self.number}" if self.number > 1 else ""
        return f"{self.sentence} (reported at {self.at.strftime(RFC_3339)}{others})"


JOB_BACK_OFF, LONGEST_BACK_OFF = timedelta(seconds=10), timedelta(minutes=10)
"""The Job controller's wait after a failed pod, doubled after each further one, and its maximum
(pkg/controller/job/job_controller.go in kubernetes). A deleted pod fails too, however it ends."""


def ignores_failures(job: Tree) -> bool:
    """Tell whether a Job's podFailurePolicy ignores any failures. The status omits them, but they lengthen the wait."""
    rules = at(job, "spec.podFailurePolicy.rules")
    return isinstance(rules, list) and any(at(each, "action") == "Ignore" for each in rules)


def next_pod_of_job(failed: int, last: datetime) -> datetime:
    """Return when a Job's controller makes its next pod at the latest, by its failed pods and the time of the last.

    It is earlier if a pod has succeeded since the first failure.
    """
    doublings = min(max(failed - 1, 0), 6)
    return last + min(JOB_BACK_OFF * (1 << doublings), LONGEST_BACK_OFF)


State = Literal["running", "ended", "ending", "gated", "starting", "unscheduled"]

PENDING: tuple[State, ...] = ("gated", "unscheduled", "starting")

_GATES = {
    QUOTA_GATE: "it is queued by the quota of its tenant",
    "kueue.x-k8s.io/admission": "Kueue has not admitted it",
    "kueue.x-k8s.io/topology": "Kueue has not chosen its nodes",
    "kueue.x-k8s.io/elastic-job": "Kueue has not admitted this part of its job",
}
_OTHER_GATE = "the system that set it has not removed it"


class Standing(Shown, frozen=True):
    """The state of a pod, in a word and in a sentence."""

    state: State
    sentence: str


class WhyPending(Shown, frozen=True):
    """The reasons why an object's pods do not run. `sentences` have the causes, the most important first.

    `pod` is the name of the examined pod. `retry` is the command that makes the controller try again at once. `waits`:
    the object waits for something.
    """

    object: str
    namespace: str
    sentences: tuple[str, ...]
    pod: str = ""
    tier: str = ""
    scheduler: str = ""
    room: Room | None = None
    refused: RefusedPods | None = None
    retry: str = ""
    waits: bool = False
    unread: tuple[str, ...] = ()


def standing(pod: Tree, now: datetime | None = None) -> Standing:
    metadata, spec, status = (pod.get(part) or {} for part in ("metadata", "spec", "status"))
    phase, node = status.get("phase"), spec.get("nodeName")
    gates = [str(each.get("name")) for each in spec.get("schedulingGates") or ()]
    if phase in ("Succeeded", "Failed"):
        return Standing("ended", f"It has ended: {phase}{_failure(status) if phase == 'Failed' else ''}.")
    if metadata.get("deletionTimestamp"):
        ends = _time(metadata["deletionTimestamp"])
        is_late = now is not None and ends is not None and ends < now
        when = f"{'should have ended' if is_late else 'ends'} by {metadata['deletionTimestamp']}"
        return Standing("ending", f"It is being deleted, and {when}.")
    if phase == "Running":
        return Standing("running", f"It runs on {node}.")
    if gates:
        return Standing(
            "gated",
            f"The scheduler ignores it until its scheduling gates are removed. {gates_said(gates)}.",
        )
    if node:
        return Standing("starting", f"It is scheduled to {node}, and its containers are starting{_slow(status)}.")
    return Standing("unscheduled", "It has no node yet.")


def running_pods(pods: Iterable[Tree]) -> Iterator[Tree]:
    """Yield the pods that are neither Succeeded nor Failed, also pending ones."""
    return (each for each in pods if (each.get("status") or {}).get("phase") not in ("Succeeded", "Failed"))


def failed_at(pod: Tree) -> datetime | None:
    """Return when the last container of a failed pod ended; None if it has not failed, or the time is unknown."""
    status = pod.get("status") or {}
    ends = [_time(at(each, "state.terminated.finishedAt")) for each in status.get("containerStatuses") or ()]
    return max(filter(None, ends), default=None) if status.get("phase") == "Failed" else None


def gates_said(gates: Iterable[str]) -> str:
    return "; ".join(f"{each}: {_GATES.get(each, _OTHER_GATE)}" for each in gates)


def scheduler_says(pod: Tree, events: Iterable[Tree]) -> str:
    """Return the scheduler's message in the pod's condition, or else in the newest event; "" if there is none."""
    conditions = (pod.get("status") or {}).get("conditions") or ()
    unscheduled = [each for each in conditions if each.get("type") == "PodScheduled" and each.get("status") == "False"]
    messages = [str(each["message"]) for each in unscheduled if each.get("message")]
    failed = [each for each in events if each.get("reason") == "FailedScheduling"]
    newest = max(failed, key=lambda each: str(each.get("lastTimestamp") or each.get("eventTime")), default=None)
    if messages or newest is None:
        return next(iter(messages), "")
    when = reported_at(newest)
    return f"{newest.get('message') or ''}{f' (reported at {when.strftime(RFC_3339)})' if when else ''}"


def lacks_a_volume(scheduler: str) -> bool:
    """Tell whether the scheduler waits for claims that bind before a pod is scheduled, and have no volume yet."""
    return "unbound immediate PersistentVolumeClaims" in scheduler


def lacks_of(scheduler: str, name: str) -> bool:
    """Tell whether the scheduler's message says that too little of a resource is free."""
    return f"Insufficient {name}" in scheduler


def waits_for_gpus_alone(scheduler: str) -> bool:
    """Tell whether the scheduler's message gives no reason but GPUs, and no result of a preemption."""
    return _ANOTHER_REASON.search(scheduler) is None


_ANOTHER_REASON = re.compile(
    r"preemption: |[Vv]olume|pods? (anti-)?affinity|topology spread|Too many pods|free ports|Insufficient (?!\S+/)"
)
"""The scheduler's text of another reason."""


def kueue_says(workloads: Iterable[Tree], uids: frozenset[str]) -> str:
    """Return Kueue's message on why the Workload of one of these objects is not admitted; "" for none."""
    for each in workloads:
        owners = (each.get("metadata") or {}).get("ownerReferences") or ()
        if any(owner.get("uid") in uids for owner in owners):
            conditions = (each.get("status") or {}).get("conditions") or ()
            unmet = [found for found in conditions if found.get("status") != "True" and found.get("message")]
            by_type = (found for kind in ("QuotaReserved", "Admitted") for found in unmet if found.get("type") == kind)
            return next((str(found["message"]) for found in by_type), "")
    return ""


def _failure(status: Tree) -> str:
    """Return why a pod failed: its own reason, and the containers that failed with theirs."""
    containers = (*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ()))
    ends = ((each.get("name"), mapped(at(each, "state.terminated"))) for each in containers)
    failed = ((name, end) for name, end in ends if end.get("exitCode"))
    found = [f"container {name}: {end.get('reason')}, exit code {end['exitCode']}" for name, end in failed]
    found = [str(status["reason"]), *found] if status.get("reason") else found
    return f" ({'; '.join(found)})" if found else ""


def _slow(status: Tree) -> str:
    for each in (*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())):
        waits = (each.get("state") or {}).get("waiting") or {}
        if waits.get("reason"):
            message = f": {waits['message']}" if waits.get("message") else ""
            return f": {each.get('name')} waits ({waits['reason']}{message})"
    return ""
