"""Which pods name which ResourceClaims, and which pods have to be read again because of them."""

import asyncio
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

from webhook.cluster.claim_informer import ClaimInformer, served_version
from webhook.kube.client import Client
from webhook.server.claimed_devices import Claimed

PAUSE_SECONDS = 0.1
"""Before pods are read again: a claim and its pods often change together."""
LISTED_SECONDS = 10.0
"""How long the first list of claims is waited for."""
AGAIN_SECONDS = 2.0
"""After this a pod of which a claim could not be read is read again."""


@dataclass(frozen=True, slots=True)
class Claimant:
    """A pod with claims, as an event or a read showed it."""

    uid: str
    namespace: str
    name: str
    claimed: Claimed


class Claimants:
    """Pods by the claims that they name. A pod without claims is not kept."""

    def __init__(self) -> None:
        self._pods: dict[str, Claimant] = {}
        self._by_claim: defaultdict[str, set[str]] = defaultdict(set)
        self._due: set[str] = set()
        self._woken = asyncio.Event()
        self._again_at = 0.0

    def get(self, uid: str) -> Claimant | None:
        """The pod as it was shown last."""
        return self._pods.get(uid)

    def problems(self) -> list[str]:
        """Pods that are not counted because a claim can't be read now."""
        count = len(self._unread())
        return [f"the resource claims of {count} {'pod' if count == 1 else 'pods'} can't be read"] if count else []

    def pod_changed(self, uid: str, found: Claimant | None) -> None:
        """A pod is as found; None: it is gone, or has no claims."""
        before = self._pods.pop(uid, None)
        for claim in before.claimed.claims if before else ():
            self._by_claim[claim].discard(uid)
            if not self._by_claim[claim]:
                del self._by_claim[claim]
        if found is not None:
            self._pods[uid] = found
            for claim in found.claimed.claims:
                self._by_claim[claim].add(uid)

    def pods_listed(self, found: Mapping[str, Claimant]) -> None:
        """These pods exist and no others."""
        for uid in [*self._pods]:
            self.pod_changed(uid, None)
        for uid, each in found.items():
            self.pod_changed(uid, each)

    def claim_changed(self, claim: str) -> None:
        """A ResourceClaim was made, or asks for something else."""
        for uid in self._by_claim.get(claim, ()):
            self.read_again(uid)

    def read_again(self, uid: str) -> None:
        """What is known of that pod is not up to date."""
        self._due.add(uid)
        self._woken.set()

    async def due(self) -> list[Claimant]:
        """The pods that have to be read again, after a while."""
        try:
            await asyncio.wait_for(self._woken.wait(), AGAIN_SECONDS)
            await asyncio.sleep(PAUSE_SECONDS)
        except TimeoutError:
            pass
        self._woken.clear()
        due, self._due = self._due, set()
        if time.monotonic() >= self._again_at:
            self._again_at = time.monotonic() + AGAIN_SECONDS
            due |= self._unread()
        return [self._pods[uid] for uid in due if uid in self._pods]

    def _unread(self) -> set[str]:
        return {uid for uid, each in self._pods.items() if each.claimed.unread and each.claimed.passing}


@asynccontextmanager
async def claims_followed(client: Client, changed: Callable[[str], None]) -> AsyncIterator[ClaimInformer | None]:
    """All ResourceClaims, followed; None where the cluster has none. Raises ApiError.

    While they can't be listed each is looked up for its pods, so nobody waits for them long.
    """
    version = await served_version(client)
    if version is None:
        yield None
        return
    async with ClaimInformer(client, version, changed) as claims:
        with suppress(TimeoutError):
            async with asyncio.timeout(LISTED_SECONDS):
                await claims.wait_synced()
        yield claims
