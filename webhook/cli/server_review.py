"""`gpu-tiers review --server`: what the webhook of a cluster says of manifests, asked by dry run. Nothing is stored."""

import asyncio
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from webhook.admission.told_owner import TOLD_OWNER
from webhook.admission.verdict import Verdict
from webhook.cli.as_stored import hook_of, our_changes
from webhook.cli.desk import Complete
from webhook.cli.documents import Document
from webhook.cli.dry_run import EXISTS, DryRuns, Reply, Unasked
from webhook.cli.finding import QUOTA_UNASKED, Finding
from webhook.objects.group_kind import POD, POD_GROUP, SCHEDULING_WORKLOAD
from webhook.objects.manifests import Manifest
from webhook.objects.refusal import Refused
from webhook.policy.assignment.request import ASSIGNED_BY, TIER_LABEL, Assignment
from webhook.policy.classification.classify_manifest import classify_manifest
from webhook.policy.classification.unknown_kinds.inside import row_by_shape
from webhook.policy.classification.unknown_kinds.plain import plain
from webhook.policy.values.tier_policy import TierPolicy
from webhook.policy.values.tiers import Tier
from webhook.policy.workloads.kinds.row import KindRow
from webhook.policy.workloads.made_pods import created_by, pods_of

Tree = dict[str, Any]

AT_ONCE = 8
"""Objects that are asked about side by side."""
_OVER_QUOTA = re.compile(r"asks for .* See TenantQuota/|^by the API server: .* exceeded quota: ")
"""A TenantQuota has no room, or a ResourceQuota."""


@dataclass(frozen=True, slots=True)
class ServerDesk:
    """Where manifests are laid for a cluster's answer. `policy` tells which kinds make pods, and where."""

    runs: DryRuns
    complete: Complete
    policy: TierPolicy

    async def findings(self, asked: Sequence[Document], done: Callable[[], None]) -> list[Finding]:
        """The findings, in the order of the objects. Raises ApiError where the cluster does not answer.

        `done` is called after each.
        """
        seats = asyncio.Semaphore(AT_ONCE)

        async def seated(document: Document) -> Finding:
            async with seats:
                found = await self.finding(document)
                done()
                return found

        return await asyncio.gather(*map(seated, asked))

    async def finding(self, document: Document) -> Finding:
        """The finding for one object, and the pods that it would make if its kind is known to."""
        row = self.policy.kinds.by_kind.get(document.group_kind)
        known = row is not None or document.group_kind in (POD, POD_GROUP, SCHEDULING_WORKLOAD)
        try:
            reply = await self.runs.create(document.tree, document.namespace)
            pods = await self._pods(document, reply.answer, row) if reply.answer else ()
        except Unasked as reason:
            return Finding(document, Verdict(), document.tree, document.tree, unasked=str(reason))
        found = replace(self._finding(document, reply), pods=pods, known=known)
        found = _of_existing(found) if EXISTS in reply.notes else found
        first = next((pod.verdict.assignment for pod in pods if pod.verdict.assignment), None)
        if first is None or found.verdict.assignment or not known:
            return found
        return replace(found, verdict=replace(found.verdict, assignment=first))

    async def _pods(self, document: Document, stored: Tree, row: KindRow | None) -> tuple[Finding, ...]:
        """One pod for each template. It tells of its owners, whom no webhook can look up: the dry run stored none.

        Of a kind that no row describes, the shape tells where templates lie.
        """
        if document.group_kind in (POD, POD_GROUP, SCHEDULING_WORKLOAD):
            return ()
        row = row or row_by_shape(replace(document, tree=plain(document.tree)))
        born = {**stored, "metadata": {**stored["metadata"], "name": document.name.rstrip("*") or "x"}}
        born["metadata"].pop("managedFields", None)
        owners = {each.uid: each.identified for each in _owners(replace(document, tree=born), row)}
        try:
            whole, _ = await self.complete(document.namespace, born, row)
            made = pods_of(replace(document, tree=whole), row)
        except Refused:
            return ()
        found = [await self._pod(document, path, count, pod, owners) for path, count, pod in made]
        return tuple(pod for pod in found if pod.verdict.ours or pod.warnings)

    async def _pod(self, document: Document, path: str, count: int, pod: Tree, owners: Mapping[str, Tree]) -> Finding:
        told = msgspec.json.encode(list(_above(pod, owners))).decode()
        annotations = {**(pod["metadata"].get("annotations") or {}), TOLD_OWNER: told}
        sent = {**pod, "metadata": {**pod["metadata"], "annotations": annotations}}
        reply = await self.runs.create(sent, document.namespace)
        return replace(self._finding(Document.of(document.source, pod), reply), path=path, count=count)

    def _finding(self, document: Document, reply: Reply) -> Finding:
        made = our_changes(document.tree, reply.answer) if reply.answer else document.tree
        return Finding(
            document,
            _verdict(document.tree, made, reply),
            document.tree,
            made,
            _changed(document.tree, made),
            guessed=classify_manifest(document, self.policy),
            notes=reply.notes,
        )


def _of_existing(found: Finding) -> Finding:
    """What exists may have its GPUs already: that a second one beside it has no room is no refusal."""
    parts = (found, *found.pods)
    if not any(part.verdict.over_quota for part in parts):
        return found
    own, *pods = (replace(part, verdict=_unrefused(part.verdict)) for part in parts)
    return replace(own, pods=tuple(pods), notes=(*found.notes, QUOTA_UNASKED))


def _unrefused(verdict: Verdict) -> Verdict:
    return replace(verdict, refusal=None, over_quota=False) if verdict.over_quota else verdict


def _owners(made: Manifest, row: KindRow) -> Iterator[Manifest]:
    """A workload, and the workloads that it would make of what it carries."""
    yield made
    for _, inner, inner_row in created_by(made, row):
        if inner_row.group_kind != POD:
            yield from _owners(inner, inner_row)


def _above(pod: Tree, owners: Mapping[str, Tree]) -> Iterator[Tree]:
    """The owners of a pod, the nearest first."""
    below = pod
    while references := below["metadata"].get("ownerReferences"):
        owner = owners.get(references[0]["uid"])
        if owner is None:
            return
        yield owner
        below = owner


def _verdict(sent: Tree, made: Tree, reply: Reply) -> Verdict:
    metadata, spec = made.get("metadata") or {}, made.get("spec") or {}
    tier = (metadata.get("labels") or {}).get(TIER_LABEL)
    step, _, reason = (metadata.get("annotations") or {}).get(ASSIGNED_BY, "").partition(": ")
    assignment = None
    if tier and step:
        value, evicts = spec.get("priority", 0), spec.get("preemptionPolicy", "PreemptLowerPriority")
        assignment = Assignment(Tier(tier, value, evicts), step, reason)
    return Verdict(
        assignment,
        warnings=reply.warnings,
        refusal=reply.refusal,
        hook=hook_of(sent, made),
        over_quota=_OVER_QUOTA.search(reply.refusal or "") is not None,
        undecided=reply.for_now,
    )


def _changed(sent: Tree, made: Tree) -> tuple[Tree, ...]:
    """As a patch: each top field that has other contents."""
    return tuple({"op": "add", "path": f"/{key}", "value": made[key]} for key in made if made[key] != sent.get(key))
