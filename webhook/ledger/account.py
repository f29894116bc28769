"""The account of a tenant in `status.ledger` of its TenantQuota, and the seal that shows that nobody edited it.

An account is a value: each change makes a new one, which replaces the old one by compare-and-swap on the TenantQuota.
It is a list of entries, each in a slot, and slot_sums.py adds them up. Its rules are in docs/decisions/books.md.
"""

import hashlib
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any, Literal, Self

import msgspec

from webhook.policy.quota.charges import Charge

MOST_GANGS = 1000
"""Most gangs of one tenant. Each takes some 300 bytes of the 1.5 MiB that etcd stores of an object. A namespace may
have as many that were not seen yet as its tenant has left."""

FORMAT = 1
"""The format that this version writes. It never changes an account of a later format."""

GangKey = tuple[str, str]
"""Namespace and uid of a workload. With the namespace a pod can't use the gang of another namespace by its uid."""
EntryKey = tuple[str, str, str]
"""Namespace, uid, and which of several entries of that uid."""

NamespaceState = Literal["open", "closed"]
State = Literal["Used", "Reserved", "Vacant", "ForQueue"]


class AccountPart(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", kw_only=True):
    """A part of an account. An absent field has its default."""


def at_tier(charges: Iterable[Charge], tier: str) -> tuple[Charge, ...]:
    """Return charges at the tier to which their gang was demoted, if it was."""
    return tuple(msgspec.structs.replace(each, tier=tier) if tier else each for each in charges)


class Entry(AccountPart, frozen=True):
    """A pod, a workload that reserves the GPUs of all of its pods (a gang), the sum of many pods, or a queue's head.

    `state`:
    - Used: the leader has seen it. A gang has one such entry, with what it declares. A sum has no uid.
    - Reserved: it was admitted, and not seen yet or seen only behind our scheduling gate. A gang is admitted by its
      create, and by each change to a `generation`. `attempt` counts the bookings of one generation, because each may
      still be stored.
    - Vacant: a pod that ended, in a tenant with a queue. The next pod of its `maker` fills the slot, until `until`.
    - ForQueue: GPUs that the head of the queue reserves until `until`, in `reserves`, by the label of a row. They count
      against bookings of tiers whose value is at most `rank`.

    `maker` is the uid of the workload whose pods replace each other: the outermost one in a tenant with a queue, else
    the controller. `of` is the uid of the gang of a pod, or of its controller. If that gang is in the account, the pod
    is inside its slot. `slot` is the uid of the entry whose slot this one shares; "" means the slot of its name.
    `instead_of`: what a pod counts until a change to `wants` is seen. `tier`: the tier to which a whole gang was
    demoted. `tries_again`: a pod of a controller of Kubernetes, whose next try may share the slot. `of_pods`: a group
    without a workload, which exists as long as one of its pods does. `until` is in seconds since 1970; 0 means without
    end.
    """

    uid: str = ""
    namespace: str = ""
    kind: str = ""
    name: str = ""
    maker: str = ""
    of: str = ""
    slot: str = ""
    state: State = "Used"
    wants: tuple[Charge, ...] = ()
    instead_of: Charge | None = None
    generation: int = 0
    attempt: int = 0
    tier: str = ""
    until: int = 0
    rank: int = 0
    reserves: Mapping[str, Decimal] = {}
    preempted: bool = False
    tries_again: bool = False
    of_pods: bool = False

    @property
    def key(self) -> EntryKey:
        """The identity of an entry. A pod is booked once, and moved to each flavor once."""
        if self.instead_of is not None:
            return self.namespace, self.uid, f"to {self.wants[0].flavor}"
        which = f"{self.generation}.{self.attempt}" if self.attempt else self.state
        return self.namespace, self.uid or f"pods of {self.of}", which

    @property
    def is_gang(self) -> bool:
        return bool(self.kind)

    @property
    def is_pod(self) -> bool:
        return bool(self.uid) and not self.kind and self.state != "ForQueue"

    @property
    def gang(self) -> GangKey:
        """The gang that this entry is, or belongs to."""
        return self.namespace, self.uid if self.kind else self.of


class PodCount(AccountPart, frozen=True):
    """How many pods of one maker use the same GPUs, without those of booked gangs and those being preempted.

    The next leader compares it with the pods that exist, to find the slots of pods that ended while nobody led.
    """

    namespace: str
    maker: str
    pods: int
    each: Charge


class Account(AccountPart, frozen=True):
    """The GPUs that pods of a tenant's namespaces use or have reserved. `pod_counts` is for a tenant with a queue."""

    format: int = 0
    revision: int = 0
    term: str = ""
    seal: str = ""
    namespaces: dict[str, NamespaceState] = {}
    entries: tuple[Entry, ...] = ()
    pod_counts: tuple[PodCount, ...] = ()

    @property
    def reserved(self) -> tuple[Entry, ...]:
        """The pods and gangs that were admitted and not seen yet."""
        return tuple(each for each in self.entries if each.state == "Reserved")

    @property
    def gangs(self) -> dict[GangKey, tuple[Entry, ...]]:
        found: dict[GangKey, tuple[Entry, ...]] = {}
        for each in self.entries:
            if each.is_gang:
                found[each.gang] = (*found.get(each.gang, ()), each)
        return found

    @property
    def newer(self) -> bool:
        """True if a later version of gpu-tiers wrote it."""
        return self.format > FORMAT

    def is_sealed(self, uid: str) -> bool:
        """Tell whether gpu-tiers wrote this account, unchanged, for the TenantQuota of that uid."""
        return self.format == FORMAT and self.seal == _digest(self, uid)

    def sealed(self, uid: str) -> Self:
        whole = msgspec.structs.replace(self, format=FORMAT)
        return msgspec.structs.replace(whole, seal=_digest(whole, uid))

    def unsealed(self) -> Self:
        """Return it without its seal, so that nobody books until a leader has rebuilt it."""
        return msgspec.structs.replace(self, seal="")


def read_account(status: dict[str, Any]) -> Account:
    """Return the account in a TenantQuota's status; an empty unsealed one if none can be read."""
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
    """Return the digest of the contents in sorted order, because a JSON object may come in any order."""
    contents = msgspec.json.encode(account.unsealed(), order="sorted")
    return "sha256:" + hashlib.sha256(uid.encode() + contents).hexdigest()[:32]
