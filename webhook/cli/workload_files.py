"""The workloads of files, and the pods among them that a cluster had: a folder may hold what `kubectl get` printed."""

from collections.abc import Sequence
from typing import TypeVar

from webhook.cli.alone import NO_TENANTS, is_fact
from webhook.cli.documents import BadInput, Document
from webhook.cli.gathering import Gathering
from webhook.cli.progress import Steps
from webhook.cli.review import cluster_of
from webhook.cluster.pod_listing import ListedPod, pod_summary
from webhook.objects.group_kind import POD
from webhook.objects.refusal import Refused
from webhook.objects.view import view
from webhook.policy.values.tier_policy import TierPolicy

T = TypeVar("T")

ENDED = ("Succeeded", "Failed")


class WorkloadFiles:
    """Objects of files, with the cluster that they are. `world` is what is not judged itself. Raises BadInput."""

    def __init__(self, asked: Sequence[Document], world: Sequence[Document], policy: TierPolicy) -> None:
        self.cluster = cluster_of(policy, [*world, *asked])
        self._policy = policy
        self._judged = [each for each in asked if not is_fact(each)]
        self.notes = () if self.cluster.tenants() else (NO_TENANTS,)

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
            pod = await pod_summary(found, self._policy, self.cluster.devices)
        except Refused as refused:
            raise BadInput(f"{document.source}: {refused.sentence}") from None
        if pod.gpus and not pod.mirrors and found.status.phase not in ENDED:
            await gathering.pod(pod, lambda: document.tree)


def _exists(document: Document) -> bool:
    """Whether a pod was stored by an API server, which gave it its uid."""
    return document.group_kind == POD and bool(document.metadata.get("uid"))
