"""What an event Preempted of the scheduler says, and whether its victim saved.

Anybody may write such events in a namespace of theirs, as long ones as are stored: no more of one is taken than the
scheduler would write. Of the victim its hooks' last words are asked, and the kubelet's event.
"""

import asyncio
import re
from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from webhook.cluster.ending_pod import Ended
from webhook.kube.client import Client
from webhook.kube.paths import path
from webhook.objects.pods import Metadata, Pod
from webhook.objects.view import Tree, View, read, view
from webhook.policy.checkpoint.hook_kinds import TERMINATION_LOG, kind_seen, tells
from webhook.policy.checkpoint.listen import VOLUME
from webhook.policy.checkpoint.outcome import KILLED, Outcome, outcome_of
from webhook.policy.quota.demand import gpu_holders
from webhook.policy.values.tier_policy import TierPolicy

SETTLED = "gpu-tiers.dev/settled"
"""The annotation of an event that somebody tells of, or that is nobody's concern."""
TOLD_NOW, SETTLED_BY_NOW = "telling", "true"
"""What it says: a leader has begun to tell of it, and nobody has to any more."""
_NAME, _UID = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?"), re.compile(r"[0-9a-zA-Z-]{1,63}")
_SAID = re.compile(r"Preempted by (?:pod (?P<uid>\S{1,63})|.{1,600}) on node (?P<node>[a-z0-9.-]{1,253})")


class Victim(View, frozen=True):
    """The pod that it is about, as the event has it."""

    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""


class _Metadata(View, frozen=True):
    namespace: str = ""
    name: str = ""
    resource_version: str = ""
    annotations: Mapping[str, str] = {}


class _Event(View, frozen=True):
    metadata: _Metadata = _Metadata()
    involved_object: Victim = Victim()
    event_time: str | None = None
    last_timestamp: str | None = None
    message: str = ""


class Preempted(NamedTuple):
    """What an event says. `by` is the uid of the pod that takes the victim's place, "" where that is none.

    `time` is when it happened, in RFC 3339.
    """

    name: str
    version: str
    settled: bool
    victim: Victim
    by: str
    node: str
    time: str


async def preempted(raw: msgspec.Raw) -> Preempted | None:
    """What an event says; None where the scheduler would not write that."""
    found = read(raw, _Event)
    where, victim, said = found.metadata, found.involved_object, _SAID.fullmatch(found.message)
    named = _NAME.fullmatch(victim.name) and _UID.fullmatch(victim.uid) and victim.namespace == where.namespace
    if said is None or not named:
        return None
    time = found.event_time or found.last_timestamp or ""
    settled = where.annotations.get(SETTLED) == SETTLED_BY_NOW
    return Preempted(where.name, where.resource_version, settled, victim, said["uid"] or "", said["node"], time)


def is_settled(event: Tree) -> bool:
    """Whether nobody has to tell of it any more."""
    return view(event, _Event).metadata.annotations.get(SETTLED) == SETTLED_BY_NOW


def hook_of(pod: Pod, policy: TierPolicy) -> str:
    """The kind of hook of an evicted pod: that of its first container with GPUs that has one."""
    containers = pod.spec.containers
    holders = [containers[each] for each in gpu_holders(pod, (), policy)] or containers
    handlers = [each.lifecycle.pre_stop for each in holders if each.lifecycle and each.lifecycle.pre_stop]
    return kind_seen(handlers, listens=any(volume.name == VOLUME for volume in pod.spec.volumes))


LATE_EVENTS = (1, 2)
"""Seconds to wait for the event of a hook that was cut off, and then again."""


async def victim_outcome(client: Client, pod: Pod, end: Ended, policy: TierPolicy) -> Outcome:
    """Whether an evicted pod saved: its containers that hold GPUs; all of them where none does. Raises ApiError."""
    containers = pod.spec.containers
    holders = [containers[each] for each in gpu_holders(pod, (), policy)] or containers
    hooks = {each.name: each.lifecycle.pre_stop for each in holders if each.lifecycle and each.lifecycle.pre_stop}
    readable = {each.name for each in holders if each.termination_message_path == TERMINATION_LOG}
    telling = {name for name, hook in hooks.items() if tells(hook)} & readable
    failed = bool(hooks) and await _hook_failed(client, pod.metadata, end)
    return outcome_of(end.containers, hooked=hooks, telling=telling, failed=failed, seen=end.seen)


async def _hook_failed(client: Client, pod: Metadata, end: Ended) -> bool:
    """Whether the kubelet says so. Of a hook that it cut off it says so once the container is dead: maybe later."""
    where, about = path("v1", "events", pod.namespace), f"reason=FailedPreStopHook,involvedObject.uid={pod.uid}"
    killed = any(each.exit_code == KILLED for each in end.containers.values())
    for wait in (0, *(LATE_EVENTS if killed else ())):
        await asyncio.sleep(wait)
        if any([page.items async for page in client.list_pages(where, {"fieldSelector": about})]):
            return True
    return False
