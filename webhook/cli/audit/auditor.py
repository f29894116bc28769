"""Judges the workloads of an audit, of a cluster or of files: from a finding to what is kept of it."""

from collections.abc import AsyncIterator, Sequence
from decimal import Decimal
from typing import TypeVar

from msgspec.structs import replace

from webhook.cli.cluster.gathering import Gathered, Gathering
from webhook.cli.manifests.documents import BadInput, Document
from webhook.cli.manifests.finding import Finding, every_part, is_fact, verdict_of
from webhook.cli.manifests.offline import NO_TENANTS, cluster_of, judged_quickly
from webhook.cli.progress import Steps
from webhook.cluster.offline import ClusterAbout, ReadOnceCluster
from webhook.cluster.pod_listing import ListedPod, pod_summary
from webhook.objects.group_kind import POD
from webhook.objects.pods import Pod
from webhook.objects.refusal import Refused, Unreadable
from webhook.objects.view import view
from webhook.policy.quota.charges import named_flavor, tier_counted
from webhook.policy.quota.demand import demand_of, held_by, shared_by
from webhook.policy.values.tier_policy import TierPolicy
from webhook.policy.values.tiers import class_in_force
from webhook.report.audit.audited import Audited, PodsAlike
from webhook.sentences.sentence import sentence


class Auditor:
    """Judges what is gathered by a policy. `facts` gives the cluster in which an object is judged."""

    def __init__(self, facts: ClusterAbout, policy: TierPolicy) -> None:
        self._facts, self._policy = facts, policy
        self.gathering: Gathering[Audited | None] = Gathering(policy.kinds, self._judged)

    def audited(self, *, running: bool) -> list[Audited]:
        """All that is not left alone. `running`: only pods that exist hold GPUs."""
        found = (with_its_pods(each, running=running) for each in self.gathering.found.values())
        return [each for each in found if each is not None]

    async def _judged(self, document: Document) -> Audited | None:
        cluster = self._facts(document)
        return await audited_by(await judged_quickly(document, cluster, self._policy), cluster, self._policy)


async def audited_by(finding: Finding, cluster: ReadOnceCluster, policy: TierPolicy) -> Audited | None:
    """What an audit says of it, with the pods that its templates would make; None where it is left alone."""
    if finding.allowed and not finding.tiered:
        return None
    verdict = verdict_of(finding, adoption=policy.adoption)
    adoption, assignments = policy.adoption, (each.verdict.assignment for each in every_part(finding))
    tiers = dict.fromkeys(each.tier for each in assignments if each and each.tier)
    return Audited(
        **verdict.as_fields(),
        tenant=cluster.known.tenant(await cluster.known.namespace(verdict.namespace)),
        classes={class_in_force(each, adoption=adoption): each.value for each in tiers},
        pods=tuple([each async for each in _pods(finding, cluster, policy)]),
    )


def with_its_pods(found: Gathered[Audited | None], *, running: bool) -> Audited | None:
    """What is said of a workload, with the pods that it has; None where it is left alone and has none.

    Of several sorts of pods that one counts that is refused. `running`: only pods that exist hold GPUs.
    """
    judged = [each for each in found.judged if each is not None]
    said = next((each for each in judged if each.message), judged[0] if judged else None)
    pods = found.pods_alike
    if said is None:  # its pods may hold GPUs though its template asks for none
        alone = Audited(kind=found.kind.kind, group=found.kind.group, namespace=found.namespace, name=found.name)
        return replace(alone, pods=pods) if pods else None
    unmade = tuple(replace(each, count=0, gpus=Decimal(0)) for each in said.pods) if running else said.pods
    named = replace(said, kind=found.kind.kind, group=found.kind.group, name=found.name)
    return replace(named, pods=pods or unmade)


async def _pods(finding: Finding, cluster: ReadOnceCluster, policy: TierPolicy) -> AsyncIterator[PodsAlike]:
    """The pods that would be made and hold GPUs."""
    for each in finding.pods or finding.inside or (finding,):
        if each.inside or each.pods:
            async for pods in _pods(each, cluster, policy):
                yield pods
        elif each.document.kind == "Pod":
            made = await _made(each, cluster, policy)
            if made and made.gpus:
                yield made


async def _made(part: Finding, cluster: ReadOnceCluster, policy: TierPolicy) -> PodsAlike | None:
    try:
        pod = view(part.before, Pod)
        claims, namespace = cluster.lookups.claims, part.document.namespace
        devices = [each for claim in pod.spec.resource_claims for each in await claims.devices(namespace, claim)]
        held = held_by(part.count, demand_of(pod, devices, policy), shared_by(devices, policy))
    except (Refused, Unreadable):  # its verdict says so
        return None
    name = pod.spec.priority_class_name
    return PodsAlike(
        count=part.count,
        gpus=held,
        class_name=name,
        tier=tier_counted(name, None, policy.tiers) if name else None,
        flavor=named_flavor(pod, policy.flavors),
        exist=False,
    )


T = TypeVar("T")

ENDED = ("Succeeded", "Failed")


class WorkloadFiles:
    """Objects of files, with the cluster that they are. `world` is what is not judged itself. Raises BadInput."""

    def __init__(self, asked: Sequence[Document], world: Sequence[Document], policy: TierPolicy) -> None:
        self.cluster = cluster_of(policy, [*world, *asked])
        self._policy = policy
        self._judged = [each for each in asked if not is_fact(each)]
        self.notes = () if self.cluster.known.tenants() else (NO_TENANTS,)

    async def gather(self, gathering: Gathering[T], steps: Steps) -> None:
        """All workloads, then the pods that exist. Raises BadInput."""
        existing = [each for each in self._judged if _exists(each)]
        steps.begin("judging", len(self._judged))
        for document in self._judged:
            if not _exists(document):
                await gathering.workload(document)
                steps.done()
        for document in existing:
            await self._pod(document, gathering)
            steps.done()
        for document in gathering.without_maker():
            await gathering.by_itself(document)

    async def _pod(self, document: Document, gathering: Gathering[T]) -> None:
        try:
            found = view(document.tree, ListedPod)
            pod = await pod_summary(found, self._policy, self.cluster.lookups.claims.devices)
        except Refused as refused:
            raise BadInput(f"{document.source}: {sentence(refused.refusal)}") from None
        if pod.gpus and found.status.phase not in ENDED:
            await gathering.pod(pod, lambda: document.tree)


def _exists(document: Document) -> bool:
    """Whether a pod was stored by an API server, which gave it its uid."""
    return document.group_kind == POD and bool(document.metadata.get("uid"))
