"""The account of a tenant, as it stands in `status.ledger` of its TenantQuota, and the seal that tells it is whole.

An account is a value: each change makes a new one, which a compare-and-swap on the TenantQuota puts in the place of
the old one. What must hold of it is in docs/ledger.md.
"""

import hashlib
from collections.abc import Iterable
from typing import Any, Literal, Self

import msgspec

from webhook.policy.quota.charges import Charge, together

MOST_GANGS = 1000
"""Workloads of one tenant that hold a charge as a whole. Each takes some 300 bytes of the 1.5 MiB that etcd stores of
an object. A namespace may have as many that were not seen yet as its tenant has left."""

FORMAT = 1
"""What this version writes. An account of a later one is left alone."""

GangKey = tuple[str, str]
"""Namespace and uid of a workload: a pod of another namespace draws on nothing, whatever it says."""
GangPlace = tuple[str, str, str]
"""Namespace, kind and name of a workload, of which the API server stores one at a time."""

NamespaceState = Literal["open", "closed"]


class AccountPart(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", kw_only=True):
    """A part of an account: what is absent has its default."""


def at_tier(charges: Iterable[Charge], tier: str) -> tuple[Charge, ...]:
    """Charges at the tier that their gang was demoted to, if it was."""
    return tuple(msgspec.structs.replace(each, tier=tier) if tier else each for each in charges)


class Holder(AccountPart, frozen=True):
    """A pod that holds GPUs, or that was promised them, listed by itself.

    `heir_of` is the uid of the preempted pod whose place it takes. `moved_from`: it has been counted so far as this
    says, and its charges are those that it gets by a change which is under way. `gang` is the uid of the workload on
    whose charge it draws, where that is not its controller.
    """

    uid: str
    namespace: str
    name: str = ""
    controller: str = ""
    charges: tuple[Charge, ...] = ()
    gang: str = ""
    heir_of: str = ""
    preempted: bool = False
    moved_from: Charge | None = None

    @property
    def key(self) -> tuple[str, str]:
        """What tells one reservation from another: a pod is booked once, and moved to each flavor once."""
        return self.uid, "" if self.moved_from is None else f"to {self.charges[0].flavor}"

    @property
    def draws_on(self) -> GangKey:
        """The gang that it is of, if that is one that holds a charge."""
        return self.namespace, self.gang or self.controller


class Promise(AccountPart, frozen=True):
    """What a workload was let in with, not seen to be stored yet: by its create, or by a change to `generation`.

    `attempt` counts the bookings of one generation: each may be stored for as long after it.
    """

    generation: int = 0
    attempt: int = 0
    charges: tuple[Charge, ...] = ()

    @property
    def terms(self) -> tuple[int, tuple[Charge, ...]]:
        """What was asked for; another attempt asks for the same."""
        return self.generation, self.charges


class Gang(AccountPart, frozen=True):
    """A workload that holds the GPUs of all of its pods, from its create to its end.

    `declared` is what it asks for as the leader has seen it, and `held` what its pods hold that exist, but for those
    that are listed one by one. `tier`: all of its pods run at this one, to which it was demoted. `of_pods`: it is a
    group without a workload, which is there as long as one of its pods is. `apart`: when it was booked, another of its
    name had pods. Those may outlive that one, so it needs room beside them.
    """

    uid: str
    namespace: str
    kind: str
    name: str
    declared: tuple[Charge, ...] = ()
    held: tuple[Charge, ...] = ()
    promises: tuple[Promise, ...] = ()
    tier: str = ""
    of_pods: bool = False
    apart: bool = False

    @property
    def key(self) -> GangKey:
        return self.namespace, self.uid

    @property
    def place(self) -> GangPlace:
        """What only one of several gangs can have: a second create of its name fails while the first is there."""
        return self.namespace, self.kind, self.uid if self.apart else self.name or self.uid

    @property
    def let_in_with(self) -> tuple[Charge, ...]:
        """The most that it was let in with, whatever its pods hold."""
        return max((self.declared, *(each.charges for each in self.promises)), key=together)


class Account(AccountPart, frozen=True):
    """What a tenant's namespaces hold, and what they were promised.

    `held` sums the pods that exist, by tier and flavor; those in `pods` are listed one by one instead, because a
    reservation has to do with them, and those of `gangs` stand there. `claims` are the shared parts of pods in `held`:
    an entry for each claim.
    """

    format: int = 0
    revision: int = 0
    term: str = ""
    seal: str = ""
    namespaces: dict[str, NamespaceState] = {}
    held: tuple[Charge, ...] = ()
    claims: tuple[Charge, ...] = ()
    pods: tuple[Holder, ...] = ()
    reservations: tuple[Holder, ...] = ()
    gangs: tuple[Gang, ...] = ()

    @property
    def newer(self) -> bool:
        """Whether a later version of gpu-tiers wrote it."""
        return self.format > FORMAT

    def is_sealed(self, uid: str) -> bool:
        """Whether it is as one of us wrote it, for the TenantQuota of that uid."""
        return self.format == FORMAT and self.seal == _digest(self, uid)

    def sealed(self, uid: str) -> Self:
        whole = msgspec.structs.replace(self, format=FORMAT)
        return msgspec.structs.replace(whole, seal=_digest(whole, uid))

    def unsealed(self) -> Self:
        """Without: nobody books until a leader has rebuilt it."""
        return msgspec.structs.replace(self, seal="")


def read_account(status: dict[str, Any]) -> Account:
    """The account in a TenantQuota's status; an empty unsealed one where there is none that can be read."""
    try:
        return msgspec.convert(status.get("ledger") or {}, Account)
    except msgspec.ValidationError:
        # A later version's account need not look like ours.
        ledger = status["ledger"]
        found = ledger.get("format") if isinstance(ledger, dict) else None
        return Account(format=found if type(found) is int and found > FORMAT else 0)


def written_account(account: Account) -> dict[str, Any]:
    tree: dict[str, Any] = msgspec.to_builtins(account)
    return tree


def _digest(account: Account, uid: str) -> str:
    """Of the contents in one order, whatever order a JSON object came in."""
    contents = msgspec.json.encode(account.unsealed(), order="sorted")
    return "sha256:" + hashlib.sha256(uid.encode() + contents).hexdigest()[:32]
