"""The interfaces through which a leader sees the cluster, and the state that its parts share."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol

import msgspec

from webhook.ledger.kubernetes_store import KubernetesStore
from webhook.ledger.leader.pod_view import PodView
from webhook.ledger.leader.queue import Queued
from webhook.ledger.leader.terms import Term
from webhook.ledger.leader.workload_view import WorkloadView
from webhook.ledger.protocol import Declared, Holding
from webhook.ledger.versions import Version
from webhook.policy.quota.charges import StrandedGang
from webhook.policy.quota.tenant_status import Count, Status


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

    def lets_go(self, namespace: str) -> bool:
        """Tell whether no quota queues pods in a namespace, so that our gates there are opened."""

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
