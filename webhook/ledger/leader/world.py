"""What a leader needs of the world, which the server wires in; and what the parts of a leader share."""

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
        """The uid of the pod of that name and what it holds, by a quorum read; None without one. Raises ApiError."""

    async def list_in(self, namespace: str) -> Mapping[str, Holding]:
        """What the pods of a namespace hold, by a quorum read. Raises ApiError."""

    def problems(self) -> list[str]:
        """Why they can't be followed now, a sentence each."""


class Workloads(Protocol):
    """The workloads that hold a charge as a whole."""

    async def find(self, kind: str, namespace: str, name: str) -> tuple[str, Declared | None] | None:
        """The uid of a workload and what it declares, nothing once it has ended, by a quorum read; None without one.

        Raises ApiError.
        """


class World(Protocol):
    """Pods, workloads, namespaces and the policy."""

    def workloads(self, observer: WorkloadView) -> AbstractAsyncContextManager[Workloads]:
        """Tell the observer of all workloads, by quorum lists, and then of each change."""

    def pods(self, observer: PodView) -> AbstractAsyncContextManager[Pods]:
        """Tell the observer of all pods, by a quorum list, and then of each change."""

    def wanted(self) -> Mapping[str, str]:
        """Whose each namespace is, by the names of tenants; those of nobody are left out."""

    def status(self, version: Version, count: Count) -> Status:
        """What the status of a TenantQuota says beside its account."""

    def tell_stranded(self, tenant: str, gangs: Sequence[StrandedGang]) -> None:
        """These gangs of a tenant can't run within its quota, and no others. It may be told so again and again."""

    def lets_go(self, namespace: str) -> bool:
        """Whether nobody's quota holds pods there: what is gated by us is opened, whatever is used."""

    async def open_gate(self, uid: str, holding: Holding) -> None:
        """Open our gate of a pod as it was seen. Raises ApiError, also where it has changed since."""

    def tell_queue(self, tenant: str, queue: Sequence[Queued]) -> None:
        """Who of a tenant waits for room, in the order of their turns. It may be told so again and again."""

    def now(self) -> float:
        """Seconds since 1970: what the account says of times the next leader reads too."""

    def subscribe(self, listener: Callable[[], None]) -> None:
        """Call a function after each change of `wanted` or `status`. It must be quick."""


class Leading(msgspec.Struct, frozen=True):
    """What the parts of a leader share in one term.

    `horizon`: H, the longest that a create can be under way after our yes, in seconds.
    """

    term: Term
    store: KubernetesStore
    view: PodView
    world: World
    horizon: float
    clock: Callable[[], float]
