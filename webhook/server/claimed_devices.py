"""What the claims of pods that exist ask for: the claims themselves say it, and before they are made their templates.

A template may be swapped between a pod's admission and the making of its claim, and a claim deleted and made anew.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

import structlog

from webhook.cluster.claim_informer import ClaimInformer
from webhook.cluster.live import LiveCluster
from webhook.cluster.pod_informer import SeenPod
from webhook.objects.pods import PodClaim
from webhook.objects.refusal import Missing, Unreadable
from webhook.policy.workloads.workload import Devices

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Claimed:
    """What a pod's claims ask for, and what was read of each ResourceClaim that it names, by namespace/name.

    `unread`: what one of them asks for was never known. `passing`: because it can't be read now; else it does not
    exist, and the pod holds nothing by it.
    """

    devices: tuple[Devices, ...] = ()
    claims: Mapping[str, tuple[Devices, ...]] = field(default_factory=dict)
    unread: bool = False
    passing: bool = False


NO_CLAIMS = Claimed()


class ClaimedDevices:
    """Reads pods' claims, and remembers what they asked for last: that stands while one can't be read.

    `watched` is None where the cluster has no ResourceClaims.
    """

    def __init__(self, cluster: LiveCluster, watched: ClaimInformer | None) -> None:
        self._cluster = cluster
        self._watched = watched
        self._known: dict[str, dict[str, tuple[Devices, ...]]] = {}

    async def of(self, seen: SeenPod) -> Claimed:
        """What the claims of a pod ask for."""
        known = self._known.setdefault(seen.pod.metadata.uid, {})
        claims: dict[str, tuple[Devices, ...]] = {}
        unread: list[Unreadable] = []
        for claim in seen.pod.spec.resource_claims:
            key = _key(seen, claim)
            try:
                known[claim.name] = await self._read(seen, claim, key)
            except Unreadable as problem:
                log.warning("claims not counted", pod=seen.pod.metadata.name, reason=str(problem))
                unread += [problem] if claim.name not in known else []
            if key:
                claims[key] = tuple(map(_bare, known.get(claim.name, ())))
        devices = tuple(each for found in known.values() for each in found)
        passing = any(not isinstance(problem, Missing) for problem in unread)
        return Claimed(devices, claims, unread=bool(unread), passing=passing)

    def is_current(self, claimed: Claimed) -> bool:
        """Whether the watch says the same of the claims now."""
        now = {key: self._watched.devices(key) if self._watched else None for key in claimed.claims}
        return all(now[key] in (None, read) for key, read in claimed.claims.items())

    def forget_all_but(self, pods: Collection[str]) -> None:
        """Only these pods exist, by uid."""
        self._known = {uid: known for uid, known in self._known.items() if uid in pods}

    def forget(self, uid: str) -> None:
        """A pod is gone."""
        self._known.pop(uid, None)

    async def _read(self, seen: SeenPod, claim: PodClaim, key: str) -> tuple[Devices, ...]:
        """What was made of a template is the pod's own; of a claim that the pod names other pods may have a part."""
        namespace = seen.pod.metadata.namespace
        if not key:
            return await self._cluster.devices(namespace, claim)
        found = self._watched.devices(key) if self._watched else None
        if found is None:
            name = key.removeprefix(f"{namespace}/")
            found = await self._cluster.devices(namespace, PodClaim(claim.name, resource_claim_name=name))
        shared = key if claim.resource_claim_name is not None else ""
        return tuple(replace(each, entry=claim.name, claim=shared) for each in found)


def _key(seen: SeenPod, claim: PodClaim) -> str:
    """The ResourceClaim as namespace/name; "" where none has been made of the template yet."""
    name = claim.resource_claim_name or seen.made.get(claim.name)
    return f"{seen.pod.metadata.namespace}/{name}" if name else ""


def _bare(devices: Devices) -> Devices:
    """As the claim says it, without what the pod calls it."""
    return replace(devices, entry="", claim="")
