"""Follows ResourceClaims. Of each only the devices are kept: one may be made after its pods, or anew by its name."""

import logging
from collections.abc import Callable, Mapping

import msgspec

from webhook.kube.client import Client
from webhook.kube.paths import path
from webhook.kube.reflector import Reflector, Reflectors, Source
from webhook.objects.pods import Metadata
from webhook.objects.refusal import Refused
from webhook.objects.view import View, read
from webhook.policy.workloads.claims import ClaimSpec, devices_of
from webhook.policy.workloads.workload import Devices
from webhook.sentences.sentence import sentence

log = logging.getLogger(__name__)


class SeenClaim(msgspec.Struct, frozen=True):
    """A ResourceClaim by its namespace/name, and what it asks for; no pod's name of it is in there."""

    key: str
    devices: tuple[Devices, ...]


class ClaimInformer(Reflectors):
    """Watches all ResourceClaims. `changed` gets the namespace/name of one that asks for something else than before.

    The end of a claim is no change: its pods still hold what they held.
    """

    def __init__(self, client: Client, api_version: str, changed: Callable[[str], None]) -> None:
        self._changed = changed
        self._claims: dict[str, SeenClaim] = {}
        self._uids: dict[str, str] = {}
        source = Source(path(api_version, "resourceclaims"), key="uid")
        super().__init__(Reflector(client, source, self._projected, self._update, self._replace))

    def devices(self, key: str) -> tuple[Devices, ...] | None:
        """Return what the claim of a namespace/name asks for; None where the watch knows none."""
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
