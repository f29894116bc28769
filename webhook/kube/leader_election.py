"""One of several processes leads: the client library's election, on a Lease that our own client reads and writes.

A Lease does not fence: a leader that was paused believes in it for a moment longer. What it writes is fenced by terms
(docs/ledger.md). Source: https://kubernetes.io/docs/concepts/architecture/leases/
"""

import asyncio
import json
import logging
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any

from kubernetes.aio.client.exceptions import ApiException
from kubernetes.aio.leaderelection.electionconfig import Config
from kubernetes.aio.leaderelection.leaderelection import LeaderElection as Election
from kubernetes.aio.leaderelection.leaderelectionrecord import LeaderElectionRecord
from kubernetes.aio.leaderelection.resourcelock.baselock import BaseLock

from webhook.kube.client import Client, path
from webhook.kube.errors import ApiError, Failed
from webhook.objects.view import Tree

log = logging.getLogger(__name__)

API_VERSION = "coordination.k8s.io/v1"
ADDRESS = "gpu-tiers.dev/leader-address"
"""Annotation of the Lease: host and port at which the other replicas reach the leader."""

RENEWED_SECONDS = 3.0
"""A renewal may be so old whatever the Lease's time: nobody renews it, or looks at it, more often than every second."""

Lead = Callable[[bool], Awaitable[None]]
"""What the leader does until it is cancelled. True: nobody has led before, for the Lease was empty."""


async def _nothing() -> None:
    """The library's own hooks: it would not notice that the leader's work has ended."""


class LeaderElection(BaseLock):
    """Competes for one Lease, as namespace/name, under an `identity` that no other process has.

    `seconds`: how long it holds unrenewed.

    `address` is where the others reach us while we lead; "" for nowhere. It is the lock as the library asks for it,
    which takes records of times and durations as text.
    """

    def __init__(
        self,
        client: Client,
        lease: str,
        identity: str,
        seconds: int,
        clock: Callable[[], float] = time.monotonic,
        address: str = "",
    ) -> None:
        namespace, _, name = lease.partition("/")
        super().__init__(name, namespace, identity)
        self.leading = False
        self._client = client
        self._seconds = seconds
        self._clock = clock
        self._address = address
        self._list = path(API_VERSION, "leases", namespace)
        self._stored: Tree = {}
        self._holder = LeaseHolder(clock)
        self._missing_since: float | None = None
        self._was_held = self._was_new = False

    @property
    def holder(self) -> str:
        """Who holds the Lease, "" for nobody or one that has run out: who does not lead reads it every few seconds."""
        return self._holder.name

    @property
    def is_renewed(self) -> bool:
        """Whether whoever holds the Lease, we too, renews it: a leader that has died holds it for some time yet."""
        return self._holder.is_renewed

    @property
    def holder_address(self) -> str:
        """Where the holder says that it is reached; "" for nowhere. One of another version may have left another's."""
        return self._annotations.get(ADDRESS, "") if self.holder else ""

    @property
    def _annotations(self) -> Tree:
        return self._stored.get("metadata", {}).get("annotations") or {}

    async def run(self, lead: Lead) -> None:
        """Compete for ever, and lead while the Lease is held. Where `lead` ends, the Lease is given up."""
        while True:
            election: Any = Election(
                Config(
                    self,
                    lease_duration=self._seconds,
                    # the library's proportions: 15 s, 10 s, 2 s
                    renew_deadline=self._seconds * 2 / 3,
                    retry_period=max(self._seconds / 7.5, 1.0),
                    onstarted_leading=_nothing,
                    onstopped_leading=_nothing,
                )
            )
            await election.acquire()
            log.info("leading", {"identity": self.identity})
            tasks = [asyncio.ensure_future(lead(self._was_new)), asyncio.ensure_future(election.renew_loop())]
            self.leading = True
            try:
                await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            finally:
                self.leading = False
                for task in tasks:
                    task.cancel()
                for problem in await asyncio.gather(*tasks, return_exceptions=True):
                    if isinstance(problem, Exception):
                        log.error("leading ended", exc_info=problem)
                await self._give_up()
            log.info("no longer leading", {"identity": self.identity})

    async def get(self, name: str, _namespace: str) -> tuple[bool, Any]:
        try:
            self._see(await self._client.get(f"{self._list}/{name}"))
        except ApiError as error:
            code = error.code if isinstance(error, Failed) else 0
            if code != HTTPStatus.NOT_FOUND:
                self._missing_since = None
            elif self._missing_since is None:
                self._missing_since = self._clock()
            failure = ApiException(status=code, reason=str(error))
            failure.body = json.dumps({"code": code})
            return False, failure
        spec = self._stored.get("spec") or {}
        holder, seconds = spec.get("holderIdentity") or None, spec.get("leaseDurationSeconds")
        return True, LeaderElectionRecord(
            holder, str(seconds) if seconds else None, spec.get("acquireTime"), spec.get("renewTime")
        )

    async def create(self, name: str, namespace: str, election_record: Any) -> bool:  # noqa: ARG002
        """Make the Lease where it stays missing: helm makes it after the Deployment, Argo CD does not make it.

        That it was missing does not prove that nobody has led.
        """
        if self._missing_since is None or self._clock() - self._missing_since < self._seconds:
            return False
        lease = {"apiVersion": API_VERSION, "kind": "Lease", "metadata": {"name": name}, "spec": self._spec({})}
        return await self._done(self._client.create(self._list, lease))

    async def update(self, name: str, _namespace: str, _record: Any) -> bool:
        before, was_held = self._stored.get("spec") or {}, self._was_held
        metadata = {**self._stored["metadata"], "annotations": {**self._annotations, ADDRESS: self._address}}
        lease = {**self._stored, "metadata": metadata, "spec": self._spec(before)}
        done = await self._done(self._client.replace(f"{self._list}/{name}", lease))
        self._was_new |= done and not before and not was_held
        return done

    async def _give_up(self) -> None:
        """Let the next one have it at once, if it is still ours."""
        self._was_new = False
        held, record = await self.get(self.name, self.namespace)
        if held and record.holder_identity == self.identity:
            spec = {**self._stored["spec"], "holderIdentity": "", "leaseDurationSeconds": 1}
            await self._done(self._client.replace(f"{self._list}/{self.name}", {**self._stored, "spec": spec}))

    def _spec(self, before: Tree) -> Tree:
        """For people, and for the others, who see that it changes: nobody compares its times with a clock."""
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        again = before.get("holderIdentity") == self.identity
        return {
            "holderIdentity": self.identity,
            "leaseDurationSeconds": self._seconds,
            "acquireTime": before.get("acquireTime") if again else now,
            "renewTime": now,
            "leaseTransitions": before.get("leaseTransitions", 0) + (0 if again or not before else 1),
        }

    def _see(self, lease: Tree) -> None:
        self._stored, self._missing_since = lease, None
        self._was_held = self._was_held or bool(lease.get("spec"))
        self._holder.see(lease.get("spec") or {})

    async def _done(self, request: Awaitable[Tree]) -> bool:
        try:
            self._see(await request)
        except ApiError as error:
            log.debug("lease not written", {"error": str(error)})
            return False
        return True


class LeaseHolder:
    """Whoever renews the Lease; nobody once it was not seen to change for as long as it lasts.

    So the clocks of two machines are never compared.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._spec: Tree = {}
        self._changed = clock()
        self._was_renewed = False

    def see(self, spec: Tree) -> None:
        """Take the Lease's spec as it was read or written: each renewal changes its renewTime."""
        if spec != self._spec:
            self._was_renewed = spec.get("holderIdentity") == self._spec.get("holderIdentity")
            self._spec, self._changed = spec, self._clock()

    @property
    def name(self) -> str:
        held = self._clock() - self._changed < self._lasts
        return (self._spec.get("holderIdentity") or "") if held else ""

    @property
    def is_renewed(self) -> bool:
        """Whether it was renewed a moment ago, and not only taken: a new leader has not counted yet."""
        recently = self._clock() - self._changed < max(self._lasts / 3, RENEWED_SECONDS)
        return bool(self.name) and self._was_renewed and recently

    @property
    def _lasts(self) -> float:
        return self._spec.get("leaseDurationSeconds") or 0
