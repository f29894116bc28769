"""Reads the devices that existing pods ask for by claims, and finds pods to read again because their claims changed.

A claim itself says what it asks for, and before it is created its template does. Somebody may replace the template
between a pod's admission and the creation of its claim, or delete a claim and create it again.
"""

import asyncio
import logging
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

import msgspec
from msgspec.structs import replace

from webhook.cluster.cluster import Lookups
from webhook.cluster.pod_informer import SeenPod
from webhook.controllers.pods_on_nodes import NO_CLAIMS, Claimed, ObservedPod
from webhook.kube.client import Client, path
from webhook.kube.discovery import served_version
from webhook.kube.reflector import Reflector, Reflectors, Source
from webhook.objects.pods import Metadata, PodClaim
from webhook.objects.refusal import Missing, Refused, Unreadable
from webhook.objects.view import View, read
from webhook.policy.quota.demand import admitted_with
from webhook.policy.workloads.claims import GROUP, ClaimSpec, devices_of
from webhook.policy.workloads.workload import Devices
from webhook.sentences.sentence import sentence


class SeenClaim(msgspec.Struct, frozen=True):
    """A ResourceClaim by its namespace/name, and its devices, without the names that pods give them."""

    key: str
    devices: tuple[Devices, ...]


class ClaimInformer(Reflectors):
    """Watches all ResourceClaims. `changed` gets the namespace/name of a claim with other devices than before.

    The end of a claim is no change, because its pods still use its devices.
    """

    def __init__(self, client: Client, api_version: str, changed: Callable[[str], None]) -> None:
        self._changed = changed
        self._claims: dict[str, SeenClaim] = {}
        self._uids: dict[str, str] = {}
        source = Source(path(api_version, "resourceclaims"), key="uid")
        super().__init__(Reflector(client, source, self._projected, self._update, self._replace))

    def devices(self, key: str) -> tuple[Devices, ...] | None:
        """Return the devices of the claim with this namespace/name; None if the watch knows no such claim."""
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


log = logging.getLogger(__name__)

PAUSE_SECONDS = 0.1
"""Seconds before pods are read again, because a claim and its pods often change together."""
LISTED_SECONDS = 10.0
"""Seconds to wait for the first list of claims."""
AGAIN_SECONDS = 2.0
"""Seconds after which a pod with an unreadable claim is read again."""


@dataclass(eq=False)
class PodClaims:
    """Reads pods' claims, remembers their devices in case a claim can't be read, and finds pods to read again.

    `watched` is None if the cluster has no ResourceClaims. `counts` tells whether devices are GPUs. Other devices are
    not remembered, because a pod may name a hundred claims with hundreds of devices in each.
    """

    lookups: Lookups
    watched: ClaimInformer | None
    counts: Callable[[Devices], bool]
    _known: dict[str, dict[str, tuple[Devices, ...]]] = field(default_factory=dict)
    _pods: dict[str, ObservedPod] = field(default_factory=dict)
    """The pods that name claims."""
    _by_claim: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    _due: set[str] = field(default_factory=set)
    _woken: asyncio.Event = field(default_factory=asyncio.Event)
    _again_at: float = 0.0

    @asynccontextmanager
    async def followed(self, client: Client) -> AsyncIterator[None]:
        """Watch all ResourceClaims if the cluster serves them. Raises ApiError.

        If they can't be listed soon, go on, because each claim is then looked up for its pods.
        """
        version = await served_version(client, GROUP, "resourceclaims")
        if version is None:
            yield
            return
        async with ClaimInformer(client, version, self.claim_changed) as self.watched:
            with suppress(TimeoutError):
                async with asyncio.timeout(LISTED_SECONDS):
                    await self.watched.wait_synced()
            yield

    async def of(self, seen: SeenPod) -> Claimed:
        """Return the devices that the claims of a pod ask for."""
        known = self._known.setdefault(seen.metadata.uid, {})
        claims: dict[str, tuple[Devices, ...]] = {}
        unread: list[Unreadable] = []
        noted = admitted_with(seen.metadata)
        for claim in seen.spec.resource_claims:
            name = claim.resource_claim_name or seen.made.get(claim.name)
            key = f"{seen.metadata.namespace}/{name}" if name else ""  # "": none was created from the template yet
            try:
                known[claim.name] = await self._read(seen, claim, key)
            except Unreadable as problem:
                log.warning("claims not counted", {"pod": seen.metadata.name, "reason": str(problem)})
                unread += [problem] if claim.name not in known and claim.name not in noted else []
            if key:
                # without the names that the pod gives them
                claims[key] = tuple(replace(each, entry="", claim="") for each in known.get(claim.name, ()))
        devices = tuple(each for found in known.values() for each in found)
        passing = any(not isinstance(problem, Missing) for problem in unread)
        return Claimed(devices, claims, unread=bool(unread), passing=passing)

    def is_current(self, claimed: Claimed) -> bool:
        """Tell whether the watch shows the same claims now."""
        shown = ((self.watched.devices(key) if self.watched else None, read) for key, read in claimed.claims.items())
        return all(found is None or self._counted(found) == read for found, read in shown)

    async def _read(self, seen: SeenPod, claim: PodClaim, key: str) -> tuple[Devices, ...]:
        """Read one claim. A claim from a template is the pod's own; other pods may share one that the pod names."""
        namespace = seen.metadata.namespace
        if not key:
            return self._counted(await self.lookups.fresh().devices(namespace, claim))
        found = self.watched.devices(key) if self.watched else None
        if found is None:
            name = key.removeprefix(f"{namespace}/")
            found = await self.lookups.fresh().devices(namespace, PodClaim(claim.name, resource_claim_name=name))
        shared = key if claim.resource_claim_name is not None else ""
        return tuple(replace(each, entry=claim.name, claim=shared) for each in self._counted(found))

    def _counted(self, found: Collection[Devices]) -> tuple[Devices, ...]:
        return tuple(filter(self.counts, found))

    def problems(self) -> list[str]:
        count, watch = len(self._unread()), self.watched.problems() if self.watched else []
        unread = f"the resource claims of {count} {'pod' if count == 1 else 'pods'} can't be read"
        return [*watch, unread] if count else watch

    def is_newest(self, uid: str, pod: ObservedPod) -> bool:
        """Tell whether no event has shown another state of the pod since `pod`."""
        return self._pods.get(uid) is pod

    def pod_changed(self, uid: str, found: ObservedPod | None) -> None:
        """Note a pod as found; None if it is gone."""
        self._index(uid, found)
        if found is None:
            self._known.pop(uid, None)
        elif not self.is_current(found.claimed):
            self.read_again(uid)

    def pods_listed(self, found: Mapping[str, ObservedPod]) -> None:
        for uid in [*self._pods]:
            self._index(uid, None)
        self._known = {uid: known for uid, known in self._known.items() if uid in found}
        for uid, each in found.items():
            self.pod_changed(uid, each)

    def _index(self, uid: str, found: ObservedPod | None) -> None:
        before = self._pods.pop(uid, None)
        for claim in before.claimed.claims if before else ():
            self._by_claim[claim].discard(uid)
            if not self._by_claim[claim]:
                del self._by_claim[claim]
        if found is not None and found.claimed is not NO_CLAIMS:
            self._pods[uid] = found
            for claim in found.claimed.claims:
                self._by_claim[claim].add(uid)

    def claim_changed(self, claim: str) -> None:
        """Note that a ResourceClaim was created or changed."""
        for uid in self._by_claim.get(claim, ()):
            self.read_again(uid)

    def read_again(self, uid: str) -> None:
        """Note that a pod has to be read again."""
        self._due.add(uid)
        self._woken.set()

    async def due(self) -> dict[str, ObservedPod]:
        """Wait for pods that have to be read again, for AGAIN_SECONDS at most, and return them by uid."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._woken.wait(), AGAIN_SECONDS)
            await asyncio.sleep(PAUSE_SECONDS)
        self._woken.clear()
        due, self._due = self._due, set()
        if time.monotonic() >= self._again_at:
            self._again_at = time.monotonic() + AGAIN_SECONDS
            due |= self._unread()
        return {uid: self._pods[uid] for uid in due if uid in self._pods}

    def _unread(self) -> set[str]:
        return {uid for uid, each in self._pods.items() if each.claimed.unread and each.claimed.passing}
