"""The webhook's verdict on a manifest, without an API server: the same code, asked twice as an API server asks.

`judge_of` is for any cluster. Without a cluster, the webhook knows only files (`cluster_of`), and each object is
created by itself.
"""

from collections.abc import Awaitable, Callable, Mapping
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
from webhook.cluster.offline import ClusterAbout, ReadOnceCluster
from webhook.ledger.account import Account
from webhook.ledger.leader.pod_view import PodView
from webhook.ledger.leader.rewrite import rewritten
from webhook.ledger.memory import MemoryLedger
from webhook.ledger.protocol import Holding, Ledger
from webhook.objects.group_kind import POD, POD_GROUP, SCHEDULING_WORKLOAD
from webhook.objects.pods import Pod
from webhook.objects.refusal import Refused, Unreadable
from webhook.objects.view import Tree, view
from webhook.policy.classification.by_shape import classify_manifest, gpus_elsewhere, objects_inside, row_by_shape
from webhook.policy.classification.evidence import Evidence
from webhook.policy.quota.demand import not_counted
from webhook.policy.quota.tenant_quotas import TENANT_QUOTA, checked_names, read_tenant
from webhook.policy.quota.tenant_status import newly_unknown
from webhook.policy.values.facts import with_selector
from webhook.policy.values.tier_policy import Mode, TierPolicy
from webhook.policy.workloads.kind_table import KindRow
from webhook.policy.workloads.templates import pod_templates, pods_of, workload

Ask = Callable[[str, Request], Awaitable[Verdict]]
"""Asks one of the two webhooks ("mutate", "validate")."""


class Judge(msgspec.Struct, frozen=True):
    """Judges manifests by the webhooks behind `ask`. With `dry_run` nothing is booked: each is judged by itself."""

    ask: Ask
    cluster: Cluster
    policy: TierPolicy
    dry_run: bool = True

    async def finding(self, document: Document) -> Finding:
        """Return the finding for one object. If its kind is unknown, only its parts are judged.

        A TenantQuota is refused only for names that the policy does not know. Raises Refused if it can't be read.
        """
        kind = document.group_kind
        if kind in (POD, POD_GROUP, SCHEDULING_WORKLOAD):
            return await self._patched(document)
        if kind == TENANT_QUOTA:
            tenant, coming = read_tenant(document.tree), checked_names(document.tree)
            refusal = newly_unknown(tenant, None, self.policy, coming)
            return Finding(document, Verdict(refusal=refusal), document.tree)
        row = self.policy.kinds.by_kind.get(kind)
        if row is None:
            return await self._of_unknown(document)
        patch, after, verdict = await self._asked(document)
        found = Finding(document, verdict, after, patch)
        # If its claims are unread, the workload is admitted, but its pods are not.
        if verdict.ours or any(each.id == "claim-unread" for each in verdict.warnings):
            found = replace(found, pods=await self._pods(replace(document, tree=after), row))
        if not verdict.ours:
            uncounted = self._uncounted(*(each.pod for each in pod_templates(document.tree, row)))
            found = replace(found, elsewhere=gpus_elsewhere(document, self.policy), uncounted=uncounted)
            # Its claims were all read, and have no GPU that counts.
            if all(each.id == "gpu-not-counted" for each in verdict.warnings) and any(
                member.template.spec.resource_claims for member in workload(document.tree, row).members
            ):
                return found
        return replace(found, guessed=self._guessed(document, verdict))

    async def _of_unknown(self, document: Document) -> Finding:
        row = row_by_shape(document)
        made = [pod for each in row.templates for pod in await self._pods(document, replace(row, templates=(each,)))]
        pods = [pod for pod in made if pod.verdict.ours]
        inside = [
            replace(await self.finding(Document(each.source, each.tree)), path=path)
            for path, each in objects_inside(document)
        ]
        return Finding(document, Verdict(), document.tree, pods=tuple(pods), known=False, inside=tuple(inside))

    async def idle_pods(self, document: Document) -> tuple[Finding, ...]:
        """Return the findings for the pods of a workload that asks for none now, one for each of its templates."""
        row = self.policy.kinds.by_kind.get(document.group_kind)
        return await self._pods(document, row, idle=True) if row else ()

    async def _pods(self, document: Document, row: KindRow, *, idle: bool = False) -> tuple[Finding, ...]:
        try:
            whole, _ = await self.cluster.lookups.completed(document.namespace, document.tree, row)
            made = pods_of(replace(document, tree=whole), row, idle=idle)
        except Refused:
            return ()  # the workload's own verdict has it already
        return tuple([await self._patched(Document(document.source, pod), path, count) for path, count, pod in made])

    async def _patched(self, document: Document, path: str = "", count: int = 1) -> Finding:
        """Return the finding after mutation, patch and validation, as the API server calls them.

        With bookings, each of `count` like pods is judged, because a later pod may be demoted. The result is the first
        refusal, or the last verdict. A dry run judges one of them.
        """
        if document.group_kind == POD:
            with suppress(Unreadable):  # the verdict says so
                # The node selector of its namespace is written before any webhook is asked.
                selector = (await self.cluster.known.namespace(document.namespace)).selector
                document = replace(document, tree=with_selector(document.tree, selector))
        for number in range(1 if self.dry_run else count):
            patch, after, verdict = await self._asked(document, f"{path}/{number}")
            if verdict.refusal is not None:
                break
        return Finding(
            document,
            verdict,
            after,
            patch,
            guessed=self._guessed(document, verdict) if verdict.ours else None,
            count=count,
            path=path,
            uncounted=() if verdict.ours else self._uncounted(document.tree),
        )

    async def _asked(self, document: Document, place: str = "") -> tuple[Operations, Tree, Verdict]:
        """Return the patch of an object by both webhooks, the patched object, and the verdict on it.

        With a `place`, the object has a uid of its own at validation, as each of several like pods.
        """
        mutated = await self.ask("mutate", request_for(document, document.tree, dry_run=self.dry_run))
        after = jsonpatch.apply_patch(document.tree, list(mutated.patch)) if mutated.patch else document.tree
        # the uid that an API server assigns before validation
        born = {**after, "metadata": {**after["metadata"], "uid": f"{document.uid}/{place}"}} if place else after
        validated = await self.ask("validate", request_for(document, born, dry_run=self.dry_run))
        shown_once = tuple(dict.fromkeys((*mutated.warnings, *validated.warnings)))
        return mutated.patch, after, replace(validated, warnings=shown_once)

    def _uncounted(self, *pods: object) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for pod in pods for name in not_counted(view(pod, Pod), self.policy)))

    def _guessed(self, document: Document, verdict: Verdict) -> Evidence | None:
        """Return the evidence for the workload type if the verdict has none, such as a refusal; otherwise None."""
        is_classified = verdict.assignment is not None and verdict.assignment.evidence is not None
        return None if is_classified else classify_manifest(document, self.policy)


def request_for(document: Document, tree: Tree, *, dry_run: bool) -> Request:
    """Return the CREATE request of an API server. Raises BadInput if the object is no valid JSON."""
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
        return (await webhooks.judge(webhook, request, Mode.Enforce, policy))[1]

    return Judge(ask, cluster, policy, dry_run)


NO_TENANTS = "No ceiling and no quota was checked: no TenantQuota was given (--tenants)."


def judge_at(cluster: ReadOnceCluster, policy: TierPolicy, ledger: MemoryLedger | None = None) -> Judge:
    """Return a judge in that cluster that books nothing; with a ledger it books what it judges."""
    policy = replace(policy, classes={**policy.classes, **cluster.known.device_classes})
    return judge_of(cluster, ledger or MemoryLedger(), policy, dry_run=ledger is None)


def in_all(cluster: ReadOnceCluster) -> ClusterAbout:
    """Return a function that judges every object in that cluster."""
    return lambda _: cluster


async def judged_alone(
    document: Document, cluster: ReadOnceCluster, policy: TierPolicy, holdings: Mapping[str, Holding] | None = None
) -> Finding:
    """Return the finding for an object as in Enforce. Its bookings are discarded, so the next object has the same room.

    `holdings` are the existing pods, by uid. If its tenant has no rows, one pod of each template is judged.
    """
    tenant = cluster.known.tenant(await cluster.known.namespace(document.namespace))
    if tenant is None or not tenant.rows:
        return await judge_at(cluster, policy).finding(document)
    found, pods, ledger = holdings or {}, PodView(lambda _: None), MemoryLedger()
    pods.observe_all(found)
    theirs = {each.namespace for each in found.values() if cluster.known.tenant_name(each.namespace) == tenant.name}
    ledger.store.set(tenant, rewritten(Account(namespaces=dict.fromkeys(theirs, "open")), pods))
    return await judge_at(cluster, policy, ledger).finding(document)


async def judged_quickly(document: Document, cluster: ReadOnceCluster, policy: TierPolicy) -> Finding:
    """Judge an object with one pod of each template. If its tenant demotes, judge each pod.

    Only then like pods may get different verdicts, because a whole workload has room or not.
    """
    tenant = cluster.known.tenant(await cluster.known.namespace(document.namespace))
    if tenant is not None and tenant.demotes:
        return await judged_alone(document, cluster, policy)
    return await judge_at(cluster, policy).finding(document)
