"""Judges the workloads of an audit: from a finding to what is kept of it."""

from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from decimal import Decimal

from webhook.cli.alone import judged_quickly
from webhook.cli.documents import Document
from webhook.cli.finding import Finding
from webhook.cli.gathering import Gathered, Gathering
from webhook.cli.listed_cluster import ClusterAbout
from webhook.cli.ruling import every_part, ruling_of
from webhook.cluster.offline import OfflineCluster
from webhook.objects.pods import Pod
from webhook.objects.refusal import Reason, Refused, Unreadable
from webhook.objects.view import view
from webhook.policy.quota.charges import tier_counted
from webhook.policy.quota.demand import demand_of, flavor_of, held_by, shared_by
from webhook.policy.values.tier_policy import TierPolicy
from webhook.policy.values.tiers import Tier, class_in_force
from webhook.readmodel.audit.audited import Audited, HookDue, PodsAlike


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


async def audited_by(finding: Finding, cluster: OfflineCluster, policy: TierPolicy) -> Audited | None:
    """What an audit says of it, with the pods that its templates would make; None where it is left alone."""
    if finding.allowed and not finding.tiered:
        return None
    ruling, evidence, document = ruling_of(finding), finding.evidence, finding.document
    parts = list(every_part(finding))
    assignment = next((each.verdict.assignment for each in parts if each.verdict.assignment), None)
    hook = next((each.hook for each in parts if each.hook), None)
    return Audited(
        kind=document.kind,
        group=document.group,
        namespace=document.namespace,
        name=document.name,
        source=document.source,
        verdict=ruling.verdict,
        tenant=cluster.tenant(await cluster.namespace(document.namespace)),
        tier=ruling.tiers[0].name if ruling.tiers else "",
        classes={class_in_force(each, adoption=policy.adoption): each.value for each in _tiers(parts)},
        decided_by=ruling.why,
        named=bool(assignment and assignment.asked),
        workload_type=ruling.type,
        evidence=evidence.text if evidence else "",
        grade=evidence.grade.name.lower() if evidence else "",
        hook=HookDue(hook["kind"], hook["gracePeriodSeconds"]) if hook else None,
        refusal=ruling.message,
        reason=next((each.verdict.reason for each in parts if each.verdict.refusal), Reason.INVALID),
        warnings=ruling.warnings,
        pods=tuple([each async for each in _pods(finding, cluster, policy)]),
    )


def with_its_pods(found: Gathered[Audited | None], *, running: bool) -> Audited | None:
    """What is said of a workload, with the pods that it has; None where it is left alone and has none.

    Of several sorts of pods that one counts that is refused. `running`: only pods that exist hold GPUs.
    """
    judged = [each for each in found.judged if each is not None]
    said = next((each for each in judged if each.refusal), judged[0] if judged else None)
    pods = found.pods_alike
    if said is None:
        return _left_alone(found, pods) if pods else None
    unmade = tuple(replace(each, count=0, gpus=Decimal(0)) for each in said.pods) if running else said.pods
    named = replace(said, kind=found.kind.kind, group=found.kind.group, name=found.name)
    return replace(named, pods=pods or unmade)


def _left_alone(found: Gathered[Audited | None], pods: tuple[PodsAlike, ...]) -> Audited:
    """A workload whose pods hold GPUs though its template asks for none."""
    return Audited(found.kind.kind, found.kind.group, found.namespace, found.name, "LeftAlone", pods=pods)


def _tiers(parts: list[Finding]) -> Iterator[Tier]:
    assignments = (each.verdict.assignment for each in parts)
    yield from dict.fromkeys(each.tier for each in assignments if each and each.tier)


async def _pods(finding: Finding, cluster: OfflineCluster, policy: TierPolicy) -> AsyncIterator[PodsAlike]:
    """The pods that would be made and hold GPUs."""
    for each in finding.pods or finding.inside or (finding,):
        if each.inside or each.pods:
            async for pods in _pods(each, cluster, policy):
                yield pods
        elif each.document.kind == "Pod":
            made = await _made(each, cluster, policy)
            if made and made.gpus:
                yield made


async def _made(part: Finding, cluster: OfflineCluster, policy: TierPolicy) -> PodsAlike | None:
    try:
        pod = view(part.before, Pod)
        claims = pod.spec.resource_claims
        devices = [each for claim in claims for each in await cluster.devices(part.document.namespace, claim)]
        held = held_by(part.count, demand_of(pod, devices, policy), shared_by(devices, policy))
    except (Refused, Unreadable):  # its verdict says so
        return None
    name = pod.spec.priority_class_name
    return PodsAlike(
        count=part.count,
        gpus=held,
        class_name=name,
        tier=tier_counted(name, None, policy.tiers) if name else None,
        flavor=flavor_of(pod, policy.flavors),
        exist=False,
    )
