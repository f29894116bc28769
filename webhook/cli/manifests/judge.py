"""What the webhook says of a manifest, without an API server: the same code, asked twice as an API server asks."""

from collections.abc import Awaitable, Callable
from contextlib import suppress

import jsonpatch
import msgspec
from msgspec.structs import replace

from webhook.admission.patch import Operations
from webhook.admission.review import GroupVersionKind, Request
from webhook.admission.reviewer import Verdict
from webhook.admission.webhook import Webhooks
from webhook.cli.manifests.documents import BadInput, Document
from webhook.cli.manifests.finding import Finding
from webhook.cluster.cluster import Cluster
from webhook.ledger.protocol import Ledger
from webhook.objects.group_kind import POD, POD_GROUP, SCHEDULING_WORKLOAD
from webhook.objects.pods import Pod
from webhook.objects.refusal import Refused, Unreadable
from webhook.objects.view import Tree, view
from webhook.policy.classification.by_shape import classify_manifest, gpus_elsewhere, objects_inside, row_by_shape
from webhook.policy.classification.evidence import Evidence
from webhook.policy.quota.demand import not_counted
from webhook.policy.values.facts import Namespace, with_selector
from webhook.policy.values.tier_policy import Mode, TierPolicy
from webhook.policy.workloads.kind_table import KindRow
from webhook.policy.workloads.templates import pod_templates, pods_of
from webhook.policy.workloads.workload import workload

Ask = Callable[[str, Request], Awaitable[Verdict]]
"""Asks one of the two webhooks ("mutate", "validate")."""

Home = Callable[[str], Awaitable[Namespace]]
"""Finds a namespace by its name. Raises Unreadable."""

Complete = Callable[[str, Tree, KindRow], Awaitable[tuple[Tree, str]]]
"""Completes a workload of a namespace with the runtime that it names."""


class Judge(msgspec.Struct, frozen=True):
    """Judges manifests by the webhooks that `ask` asks. `dry_run` books nothing: each object is judged by itself."""

    ask: Ask
    complete: Complete
    home: Home
    policy: TierPolicy
    dry_run: bool = True

    async def finding(self, document: Document) -> Finding:
        """The finding for one object; one that is neither pod, group nor workload is left alone, but not its parts."""
        kind = document.group_kind
        if kind in (POD, POD_GROUP, SCHEDULING_WORKLOAD):
            return await self._patched(document)
        row = self.policy.kinds.by_kind.get(kind)
        if row is None:
            return await self._of_unknown(document)
        patch, after, verdict = await self._asked(document)
        return Finding(
            document,
            verdict,
            document.tree,
            after,
            patch,
            guessed=None if _without_gpus(document, row, verdict) else self._guessed(document, verdict),
            pods=await self._pods(replace(document, tree=after), row) if verdict.ours or _refuses_pods(verdict) else (),
            elsewhere=() if verdict.ours else gpus_elsewhere(document, self.policy),
            uncounted=()
            if verdict.ours
            else self._uncounted(*(each.pod for each in pod_templates(document.tree, row))),
        )

    async def _of_unknown(self, document: Document) -> Finding:
        row = row_by_shape(document)
        made = [pod for each in row.templates for pod in await self._pods(document, replace(row, templates=(each,)))]
        pods = [pod for pod in made if pod.verdict.ours]
        inside = [
            replace(await self.finding(Document(each.source, each.tree)), path=path)
            for path, each in objects_inside(document)
        ]
        return Finding(
            document,
            Verdict(),
            document.tree,
            document.tree,
            pods=tuple(pods),
            known=False,
            inside=tuple(inside),
        )

    async def idle_pods(self, document: Document) -> tuple[Finding, ...]:
        """The findings for the pods of a workload that asks for none now, one for each of its templates."""
        row = self.policy.kinds.by_kind.get(document.group_kind)
        return await self._pods(document, row, idle=True) if row else ()

    async def _pods(self, document: Document, row: KindRow, *, idle: bool = False) -> tuple[Finding, ...]:
        try:
            whole, _ = await self.complete(document.namespace, document.tree, row)
            made = pods_of(replace(document, tree=whole), row, idle=idle)
        except Refused:
            return ()  # the workload's own verdict says so already
        return tuple([await self._patched(Document(document.source, pod), path, count) for path, count, pod in made])

    async def _patched(self, document: Document, path: str = "", count: int = 1) -> Finding:
        """Mutated, the patch applied, and validated: the way of a pod through the API server.

        So does each of so many like pods, as one may be demoted that the first is not. Told is the first refusal, else
        the last verdict.
        """
        if document.group_kind == POD:
            document = replace(document, tree=await self._on_its_nodes(document))
        for number in range(1 if self.dry_run else count):
            patch, after, verdict = await self._asked(document, f"{path}/{number}")
            if verdict.refusal is not None:
                break
        return Finding(
            document,
            verdict,
            document.tree,
            after,
            patch,
            guessed=self._guessed(document, verdict) if verdict.ours else None,
            count=count,
            path=path,
            uncounted=() if verdict.ours else self._uncounted(document.tree),
        )

    async def _on_its_nodes(self, document: Document) -> Tree:
        """A pod with the node selector of its namespace, which is written before any webhook is asked."""
        with suppress(Unreadable):  # the verdict says so
            return with_selector(document.tree, (await self.home(document.namespace)).selector)
        return document.tree

    async def _asked(self, document: Document, place: str = "") -> tuple[Operations, Tree, Verdict]:
        """The way of an object through both webhooks: its patch, what it becomes, and the verdict on that.

        What stands at a `place` has a uid of that, as each of several like pods.
        """
        mutated = await self.ask("mutate", request_for(document, document.tree, dry_run=self.dry_run))
        after = jsonpatch.apply_patch(document.tree, list(mutated.patch)) if mutated.patch else document.tree
        # the uid that an API server gives it before it is validated
        born = {**after, "metadata": {**after["metadata"], "uid": f"{document.uid}/{place}"}} if place else after
        validated = await self.ask("validate", request_for(document, born, dry_run=self.dry_run))
        told = tuple(dict.fromkeys((*mutated.warnings, *validated.warnings)))
        return mutated.patch, after, replace(validated, warnings=told)

    def _uncounted(self, *pods: object) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for pod in pods for name in not_counted(view(pod, Pod), self.policy)))

    def _guessed(self, document: Document, verdict: Verdict) -> Evidence | None:
        """The evidence that the verdict doesn't bring itself, as where it refuses."""
        told = verdict.assignment is not None and verdict.assignment.evidence is not None
        return None if told else classify_manifest(document, self.policy)


def _refuses_pods(verdict: Verdict) -> bool:
    """Tells whether the workload is let in and its pods are not, because their claims can't be read."""
    return any(each.id == "claim-unread" for each in verdict.warnings)


def _without_gpus(document: Document, row: KindRow, verdict: Verdict) -> bool:
    """Whether its resource claims were all read, and bring no GPU that counts."""
    if verdict.ours or any(each.id != "gpu-not-counted" for each in verdict.warnings):
        return False
    return any(member.template.spec.resource_claims for member in workload(document.tree, row).members)


def request_for(document: Document, tree: Tree, *, dry_run: bool) -> Request:
    """The CREATE that an API server would ask about. Raises BadInput where JSON can't carry the object."""
    try:
        raw = msgspec.Raw(msgspec.json.encode(tree))
    except (TypeError, RecursionError) as error:
        raise BadInput(f"{document.source}: not a Kubernetes object: {error}") from None
    return Request(
        uid=document.uid,
        kind=GroupVersionKind(group=document.group, kind=document.kind),
        namespace=document.namespace,
        name=document.name,
        operation="CREATE",
        object=raw,
        dry_run=dry_run,
    )


def judge_of(cluster: Cluster, ledger: Ledger, policy: TierPolicy, *, dry_run: bool = True) -> Judge:
    webhooks = Webhooks(cluster, ledger, lambda: policy, lambda *_: None)

    async def ask(webhook: str, request: Request) -> Verdict:
        return await webhooks.judge(webhook, request, Mode.Enforce, policy)

    return Judge(ask, cluster.lookups.completed, cluster.known.namespace, policy, dry_run)
