"""The term of a leader, the interfaces through which it sees the cluster, and the state that its parts share.

Every change first checks that the account is still under this term.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol
from uuid import uuid4

import msgspec
from msgspec.structs import replace

from webhook.ledger.account import Account
from webhook.ledger.account_writer import Edit
from webhook.ledger.accounts import Accounts
from webhook.ledger.kubernetes_store import KubernetesStore
from webhook.ledger.leader.pod_view import PodView
from webhook.ledger.leader.queue import Queued
from webhook.ledger.leader.workload_view import WorkloadView
from webhook.ledger.protocol import Declared, Holding, TryAgain
from webhook.ledger.versions import Version, WorkingCopy
from webhook.policy.quota.charges import StrandedGang
from webhook.policy.quota.tenant_status import Count, Status

log = logging.getLogger(__name__)

AT_ONCE = 16
"""TenantQuotas that are written at once."""


class Superseded(Exception):  # noqa: N818 - what has happened
    """Another process has led since, so our view may be older than its writes."""


class Term:
    """The time in which one process leads."""

    def __init__(self, ledger: Accounts, identity: str) -> None:
        self.name = f"{identity}/{uuid4().hex[:8]}"
        self.ledger = ledger

    def bears(self, account: Account) -> bool:
        """Tell whether an account is under this term. Raises Superseded if it is under another."""
        if account.term not in ("", self.name):
            raise Superseded(f"an account is under the term {account.term}")
        return account.term == self.name

    async def claim(self, tenant: str) -> None:
        """Put an account under this term, unless it is of a later version. If unsealed, empty it, to be rebuilt."""

        def edit(copy: WorkingCopy) -> None:
            if copy.sealed:
                copy.put(replace(copy.account, term=self.name))
            elif not copy.account.newer:
                copy.put(Account(term=self.name), sealed=False)

        await self.ledger.writer(tenant).change(edit)

    async def claim_all(self, store: KubernetesStore) -> None:
        """Claim all accounts. Raises ApiError if they can't be listed.

        An account that can't be written is tried again, and does not end the term. The next leader would meet the same
        error, and nothing would be counted while the API server is slow.
        """
        claimed: set[str] = set()

        async def claim(name: str) -> None:
            try:
                await self.claim(name)
                claimed.add(name)
            except TryAgain as problem:
                log.warning("ledger not claimed", {"tenant": name, "error": str(problem)})

        names = {version.name for version in await store.every()}
        while names:
            await for_each(names, claim)
            names = {name for name in names - claimed if store.versions.newest(name)}

    async def change(self, tenant: str, edit: Edit[None]) -> None:
        """Change an account. Raises Superseded if another process has led since, and TryAgain."""

        def fenced(copy: WorkingCopy) -> None:
            self.bears(copy.account)
            edit(copy)

        await self.ledger.writer(tenant).change(fenced, fresh=False)


async def for_each(names: Iterable[str], do: Callable[[str], Awaitable[None]]) -> None:
    """Do something for each TenantQuota, for some of them at once."""
    slots = asyncio.Semaphore(AT_ONCE)

    async def in_slot(name: str) -> None:
        async with slots:
            await do(name)

    async with asyncio.TaskGroup() as tasks:
        for name in names:
            tasks.create_task(in_slot(name))


class Pods(Protocol):
    """The pods that exist."""

    async def find(self, namespace: str, name: str) -> tuple[str, Holding | None] | None:
        """Return the uid and GPUs of the pod of that name by a quorum read; None without one. Raises ApiError."""

    async def list_in(self, namespace: str) -> Mapping[str, Holding]:
        """Return the GPUs of the pods of a namespace by a quorum read. Raises ApiError."""

    def problems(self) -> list[str]:
        """Return the reasons why pods can't be followed now, a sentence each."""


class Workloads(Protocol):
    """The workloads that are charged as a whole."""

    async def find(self, kind: str, namespace: str, name: str) -> tuple[str, Declared | None] | None:
        """Return the uid and charges of a workload by a quorum read; None without one. Raises ApiError.

        A workload that has ended declares nothing.
        """


class World(Protocol):
    """Pods, workloads, namespaces and the policy."""

    def workloads(self, observer: WorkloadView) -> AbstractAsyncContextManager[Workloads]:
        """Pass all workloads to the observer by quorum lists, and then each change."""

    def pods(self, observer: PodView) -> AbstractAsyncContextManager[Pods]:
        """Pass all pods to the observer by a quorum list, and then each change."""

    def wanted(self) -> Mapping[str, str]:
        """Return the tenant of each namespace that has one."""

    def status(self, version: Version, count: Count) -> Status:
        """Return the fields of a TenantQuota's status other than its account."""

    def tell_stranded(self, tenant: str, gangs: Sequence[StrandedGang]) -> None:
        """Report all gangs of a tenant that can't run within its quota. It may be called again with the same."""

    def enforces(self, namespace: str) -> bool:
        """Tell whether a quota refuses pods in a namespace; in the modes Audit and Warn it does not."""

    def opens_all_gates(self, namespace: str) -> bool:
        """Tell whether all our gates in a namespace are opened, because no quota keeps the order of its pods."""

    async def open_gate(self, uid: str, holding: Holding) -> None:
        """Open our gate of a pod as it was seen. Raises ApiError, also if it has changed since."""

    def tell_queue(self, tenant: str, queue: Sequence[Queued]) -> None:
        """Report the queue of a tenant, in order. It may be called again with the same."""

    def now(self) -> float:
        """Return seconds since 1970, because the next leader reads the times of an account too."""

    def subscribe(self, listener: Callable[[], None]) -> None:
        """Call a function after each change of `wanted` or `status`. It must be quick."""


class Leading(msgspec.Struct, frozen=True):
    """The state that the parts of a leader share in one term.

    `horizon`: H, the longest that a create can be under way after we admitted it, in seconds.
    """

    term: Term
    store: KubernetesStore
    view: PodView
    world: World
    horizon: float
    clock: Callable[[], float]
