"""Whether an evicted pod saved: asks its hooks' last words and the kubelet's event."""

import asyncio

from webhook.cluster.ending_pod import Ended
from webhook.kube.client import Client
from webhook.kube.paths import path
from webhook.objects.pods import Metadata, Pod
from webhook.policy.checkpoint.hook_kinds import TERMINATION_LOG, tells
from webhook.policy.checkpoint.outcome import KILLED, Outcome, outcome_of
from webhook.policy.quota.demand import gpu_holders
from webhook.policy.values.tier_policy import TierPolicy

LATE_EVENTS = (1, 2)
"""Seconds to wait for the event of a hook that was cut off, and then again."""


async def victim_outcome(client: Client, pod: Pod, end: Ended, policy: TierPolicy) -> Outcome:
    """The outcome of a pod's containers that hold GPUs; of all of them where none does. Raises ApiError."""
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
