"""Knows by which updates Kueue lets run what it admitted, and asks again whether one that was refused would fit."""

import itertools
from collections.abc import Callable
from typing import Any

import msgspec

from webhook.admission.review import Request, flat
from webhook.admission.verdict import Verdict
from webhook.admission.webhook import Webhooks
from webhook.cluster.live import LiveCluster
from webhook.controller.kueue_evictions import Release
from webhook.kube.client import Client
from webhook.kube.errors import NotFound
from webhook.kube.paths import path
from webhook.kube.wire import listed_objects
from webhook.ledger.protocol import Ledger
from webhook.objects.field_paths import at
from webhook.objects.group_kind import POD, GroupKind
from webhook.policy.values.tenants import Usage
from webhook.policy.values.tier_policy import Mode, TierPolicy
from webhook.policy.workloads.lifecycle import is_suspended
from webhook.policy.workloads.merging import mapped
from webhook.policy.workloads.pod_groups import KUEUE_NAME

Tree = dict[str, Any]

GATE = "kueue.x-k8s.io/admission"
ENDED = ("Succeeded", "Failed")
UNASKED = 24
"""Of so many looks one judges again though nothing seems to have changed: every two minutes."""


class KueueReleases:
    """`tell` is handed each release that is refused for want of room, if the policy says that there is a Kueue."""

    def __init__(
        self,
        client: Client,
        cluster: LiveCluster,
        ledger: Ledger,
        policy: Callable[[], TierPolicy],
        tell: Callable[[Release], None],
    ) -> None:
        self._client = client
        self._cluster = cluster
        self._ledger = ledger
        self._policy = policy
        self._tell = tell
        self._webhooks = Webhooks(cluster, ledger, policy, lambda *_: None)

    def refused(self, request: Request, verdict: Verdict) -> None:
        """An update was refused for want of room."""
        if self._policy().kueue is None or not releases(request):
            return
        tree, refused = _tree(request.object), _Refused(self, request, verdict)
        uid, sentence = str(at(tree, "metadata.uid")), flat(verdict.refusal or "")
        self._tell(Release(request.namespace, uid, sentence, refused.waits, refused.fits, _group_of(request, tree)))

    async def waits(self, request: Request) -> bool:
        """Whether the object is still held back, and of a group of pods each: Kueue deletes what runs as it evicts."""
        kind = GroupKind(request.kind.group, request.kind.kind)
        row = self._policy().kinds.by_kind.get(kind)
        plural = row.plural if row else "pods"
        version = "/".join(filter(None, (request.kind.group, request.kind.version)))
        try:
            found = await self._client.get(path(version, plural, request.namespace, request.name))
        except NotFound:
            return False
        group = _group_of(request, found)
        return is_held(found, kind) and (not group or await self._all_wait(request.namespace, group))

    async def _all_wait(self, namespace: str, group: str) -> bool:
        selected = {"labelSelector": f"{KUEUE_NAME}={group}"}
        pages = self._client.list_pages(path("v1", "pods", namespace), selected)
        pods = [_tree(raw) async for raw in listed_objects(pages)]
        return all(is_held(each, POD) or at(each, "status.phase") in ENDED for each in pods)

    async def judge(self, request: Request) -> Verdict:
        """What would be said of the update now."""
        asked = msgspec.structs.replace(request, dry_run=True)
        return await self._webhooks.judge("validate", asked, Mode.Enforce, self._policy())

    def usage(self, tenant: str | None) -> Usage:
        """What is booked on the rows of a tenant."""
        found = next((each for each in self._cluster.tenants() if each.name == tenant), None)
        return self._ledger.usage(found) if found else {}


class _Refused:
    """One refused release. It is judged again if something has changed for its tenant, and now and then unasked."""

    def __init__(self, releases_: KueueReleases, request: Request, verdict: Verdict) -> None:
        self._releases = releases_
        self._request = request
        self._tenant = verdict.tenant
        self._usage: Usage | None = None
        self._looks = itertools.count(1)

    async def waits(self) -> bool:
        return await self._releases.waits(self._request)

    async def fits(self) -> bool:
        usage = dict(self._releases.usage(self._tenant))
        if usage == self._usage and next(self._looks) % UNASKED:
            return False
        verdict = await self._releases.judge(self._request)
        self._usage = None if verdict.undecided else usage
        return verdict.refusal is None


def releases(request: Request) -> bool:
    """Whether an update lets run what was held back: a suspended workload, a pod behind Kueue's gate."""
    kind = GroupKind(request.kind.group, request.kind.kind)
    if request.operation != "UPDATE" or request.sub_resource:
        return False
    return is_held(_tree(request.old_object), kind) and not is_held(_tree(request.object), kind)


def _group_of(request: Request, tree: Tree) -> str:
    """The group of pods that Kueue lets run together; "" where there is none."""
    name = mapped(at(tree, "metadata.labels")).get(KUEUE_NAME)
    return str(name or "") if GroupKind(request.kind.group, request.kind.kind) == POD else ""


def is_held(tree: Tree, kind: GroupKind) -> bool:
    """Whether it waits to be let run."""
    if kind == POD:
        gates = at(tree, "spec.schedulingGates")
        return isinstance(gates, list) and {"name": GATE} in gates
    return is_suspended(tree)


def _tree(raw: msgspec.Raw) -> Tree:
    tree = msgspec.json.decode(raw)
    return tree if isinstance(tree, dict) else {}
