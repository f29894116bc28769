"""Elects a leader with the client library's election, on a Lease that our own client reads and writes.

A Lease does not fence writes, because a leader that was paused believes in it for a moment longer. Terms fence them
(docs/ledger.md). Source: https://kubernetes.io/docs/concepts/architecture/leases/
"""

import asyncio
import json
import logging
import re
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
from webhook.kube.errors import ApiError, Conflict, Failed
from webhook.objects.view import Tree

log = logging.getLogger(__name__)

API_VERSION = "coordination.k8s.io/v1"
ADDRESS = "gpu-tiers.dev/leader-address"
"""The annotation of the Lease with host and port of the leader, for the other replicas."""

_NUMBERS = re.compile(r"\d+")
"""The parts in which two errors of one reason may differ, such as ports."""
RENEWED_SECONDS = 3.0
"""Least age at which a renewal is too old, because a Lease is renewed and read once a second at most."""

Lead = Callable[[bool], Awaitable[None]]
"""The work of the leader until it is cancelled. True: nobody has led before, because the Lease was empty."""


async def _nothing() -> None:
    """Do nothing in the library's hooks, because it would not notice that the leader's work has ended."""


class LeaderElection(BaseLock):
    """Competes for one Lease, as namespace/name, under an `identity` that no other process has.

    `seconds`: how long the Lease is valid without a renewal. `address`: host and port of this process for the other
    replicas while it leads; "" for none. The class is the library's lock, which takes times and durations as text.
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
        self._leads = False
        self._client = client
        self._seconds = seconds
        self._clock = clock
        self._address = address
        self._list = path(API_VERSION, "leases", namespace)
        self._stored: Tree = {}
        self._holder = LeaseHolder(clock)
        self._missing_since: float | None = None
        self._was_taken = self._was_new = False
        self._problems: dict[str, str] = {}

    @property
    def leading(self) -> bool:
        """True if this process leads. After a pause longer than the Lease lasts, it must read the Lease first."""
        return self._leads and self.holder == self.identity

    @property
    def holder(self) -> str:
        """The identity of the leader, "" for none or an expired Lease. Others read the Lease every few seconds."""
        return self._holder.name

    @property
    def is_renewed(self) -> bool:
        """True if the leader, also this process, renews the Lease, which stays for a while after a leader has died."""
        return self._holder.is_renewed

    @property
    def holder_address(self) -> str:
        """The address of the leader; "" for none. A leader of an older version leaves an earlier leader's address."""
        return self._annotations.get(ADDRESS, "") if self.holder else ""

    @property
    def _annotations(self) -> Tree:
        return self._stored.get("metadata", {}).get("annotations") or {}

    async def run(self, lead: Lead) -> None:
        """Compete for ever, and lead while the Lease is ours. Give up the Lease when `lead` or its renewal ends."""
        while True:
            # the library's proportions: 15 s, 10 s, 2 s
            renew_deadline, retry_period = self._seconds * 2 / 3, max(self._seconds / 7.5, 1.0)
            config = Config(self, self._seconds, renew_deadline, retry_period, _nothing, _nothing)
            election: Any = Election(config)
            await election.acquire()
            log.info("leading", {"identity": self.identity})
            tasks = [asyncio.ensure_future(lead(self._was_new)), asyncio.ensure_future(election.renew_loop())]
            self._leads = True
            try:
                await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            finally:
                self._leads = False
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
            self._note("lease not read", "")
        except ApiError as error:
            code = error.code if isinstance(error, Failed) else 0
            if code != HTTPStatus.NOT_FOUND:
                self._missing_since = None
                self._note("lease not read", str(error))
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
        """Create the Lease if it stays missing: helm creates it after the Deployment, and Argo CD does not create it.

        A missing Lease does not prove that nobody has led.
        """
        if self._missing_since is None or self._clock() - self._missing_since < self._seconds:
            return False
        lease = {"apiVersion": API_VERSION, "kind": "Lease", "metadata": {"name": name}, "spec": self._spec({})}
        return await self._done(self._client.create(self._list, lease))

    async def update(self, name: str, _namespace: str, _record: Any) -> bool:
        """Write our spec over the Lease that was read. Note whether nobody led before."""
        before, was_taken = self._stored.get("spec") or {}, self._was_taken
        metadata = {**self._stored["metadata"], "annotations": {**self._annotations, ADDRESS: self._address}}
        lease = {**self._stored, "metadata": metadata, "spec": self._spec(before)}
        done = await self._done(self._client.replace(f"{self._list}/{name}", lease))
        self._was_new |= done and not before and not was_taken
        return done

    async def _give_up(self) -> None:
        """Release the Lease for the next leader, if it is still ours."""
        self._was_new = False
        exists, record = await self.get(self.name, self.namespace)
        if exists and record.holder_identity == self.identity:
            spec = {**self._stored["spec"], "holderIdentity": "", "leaseDurationSeconds": 1}
            await self._done(self._client.replace(f"{self._list}/{self.name}", {**self._stored, "spec": spec}))

    def _spec(self, before: Tree) -> Tree:
        """Return the spec to write. Other replicas only see that it changes, and compare its times with no clock."""
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
        self._was_taken = self._was_taken or bool(lease.get("spec"))
        self._holder.see(lease.get("spec") or {})

    async def _done(self, request: Awaitable[Tree]) -> bool:
        try:
            self._see(await request)
        except Conflict:
            return False  # another replica was first
        except ApiError as error:
            self._note("lease not written", str(error))
            return False
        self._note("lease not written", "")
        return True

    def _note(self, what: str, error: str) -> None:
        """Log why the Lease is not read or not written when that begins, and when the reason changes; "" if it is."""
        reason = _NUMBERS.sub("", error)
        if reason and reason != self._problems.get(what):
            log.warning(what, {"error": error})
        self._problems[what] = reason


class LeaseHolder:
    """The leader by the Lease; none once the Lease has not changed for its duration.

    The clocks of two machines are never compared.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._spec: Tree = {}
        self._changed = clock()
        self._was_renewed = False

    def see(self, spec: Tree) -> None:
        """Note the Lease's spec as it was read or written. Each renewal changes its renewTime."""
        if spec != self._spec:
            self._was_renewed = spec.get("holderIdentity") == self._spec.get("holderIdentity")
            self._spec, self._changed = spec, self._clock()

    @property
    def name(self) -> str:
        is_valid = self._clock() - self._changed < self._lasts
        return (self._spec.get("holderIdentity") or "") if is_valid else ""

    @property
    def is_renewed(self) -> bool:
        """True if it was renewed a moment ago, and not only taken, because a new leader has not counted yet."""
        recently = self._clock() - self._changed < max(self._lasts / 3, RENEWED_SECONDS)
        return bool(self.name) and self._was_renewed and recently

    @property
    def _lasts(self) -> float:
        return self._spec.get("leaseDurationSeconds") or 0
