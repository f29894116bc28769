"""ResourceClaims, followed or looked up. Of each only the devices are kept.

One may be made after its pods, or anew by its name.
"""

import logging
from collections.abc import Callable, Mapping

import msgspec

from webhook.cluster.stored_objects import FreshLookups, StoredObjects, in_time, kept_objects
from webhook.kube.client import Client
from webhook.kube.paths import path
from webhook.kube.reflector import Reflector, Reflectors, Source
from webhook.kube.ttl_cache import TTLCache
from webhook.objects.pods import Metadata, PodClaim
from webhook.objects.refusal import Reason, Refused
from webhook.objects.view import View, read, view
from webhook.policy.workloads.claims import GROUP, Claim, ClaimSpec, ClaimTemplate, devices_of
from webhook.policy.workloads.workload import Devices
from webhook.sentences.sentence import sentence

log = logging.getLogger(__name__)


class SeenClaim(msgspec.Struct, frozen=True):
    """A ResourceClaim by its namespace/name, and what it asks for; no pod's name of it is in there."""

    key: str
    devices: tuple[Devices, ...]


class ClaimInformer(Reflectors):
    """All ResourceClaims. `changed` is called with the namespace/name of one that asks for something else than before.

    The end of a claim is no change: its pods still hold what they held.
    """

    def __init__(self, client: Client, api_version: str, changed: Callable[[str], None]) -> None:
        self._changed = changed
        self._claims: dict[str, SeenClaim] = {}
        self._uids: dict[str, str] = {}
        source = Source(path(api_version, "resourceclaims"), key="uid")
        super().__init__(Reflector(client, source, self._projected, self._update, self._replace))

    def devices(self, key: str) -> tuple[Devices, ...] | None:
        """What the claim of a namespace/name asks for; None where the watch knows none."""
        uid = self._uids.get(key)
        return self._claims[uid].devices if uid is not None else None

    async def _projected(self, raw: msgspec.Raw) -> SeenClaim | None:
        found = read(raw, _Claim)
        key = f"{found.metadata.namespace}/{found.metadata.name}"
        try:
            return SeenClaim(key, tuple(devices_of(found.spec, "")))
        except Refused as refused:
            log.warning("claim not counted", {"claim": key, "reason": sentence(refused.refusal)})
            return None

    def _update(self, uid: str, found: SeenClaim | None) -> None:
        before = self._claims.pop(uid, None)
        if before is not None and self._uids.get(before.key) == uid:
            del self._uids[before.key]
        if found is not None:
            self._claims[uid], self._uids[found.key] = found, uid
            if found != before:
                self._changed(found.key)

    def _replace(self, found: Mapping[str, SeenClaim]) -> None:
        for uid in [uid for uid in self._claims if uid not in found]:
            self._update(uid, None)
        for uid, each in found.items():
            self._update(uid, each)


class _Claim(View, frozen=True):
    metadata: Metadata = Metadata()
    spec: ClaimSpec = ClaimSpec()


class ClaimLookup(FreshLookups, frozen=True):
    """`Claims` of an API server."""

    objects: StoredObjects
    kept: TTLCache[tuple[str, PodClaim], tuple[Devices, ...]] = kept_objects()

    async def close(self) -> None:
        await self.kept.close()

    async def devices(self, namespace: str, claim: PodClaim) -> tuple[Devices, ...]:
        async with in_time(claim.source):
            return await self.kept.get((namespace, claim), lambda: self._devices(namespace, claim), self.since)

    async def _devices(self, namespace: str, claim: PodClaim) -> tuple[Devices, ...]:
        kind, name = claimed_object(claim)
        tree = await self.objects.named(GROUP, f"{kind.lower()}s", namespace, name, f"{kind}/{name}")
        return devices_in(tree, namespace, claim)


def claimed_object(claim: PodClaim) -> tuple[str, str]:
    made = claim.resource_claim_name is not None
    name = claim.resource_claim_name if made else claim.resource_claim_template_name
    if not name:
        raise Refused(Reason.INVALID, "claim-of-nothing", "spec.resourceClaims", entry=claim.name)
    return "ResourceClaim" if made else "ResourceClaimTemplate", name


def devices_in(tree: object, namespace: str, claim: PodClaim) -> tuple[Devices, ...]:
    """What that object asks for. Raises Refused."""
    if claim.resource_claim_name is not None:
        return tuple(devices_of(view(tree, Claim).spec, claim.name, f"{namespace}/{claim.resource_claim_name}"))
    return tuple(devices_of(view(tree, ClaimTemplate).spec.spec, claim.name))
