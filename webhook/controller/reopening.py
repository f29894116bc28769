"""What an account is rebuilt with: its promises, and the namespaces that it opens.

Decisions are made one at a time; the lists and writes that follow run side by side. Until it is known how a write has
ended, the namespaces that it opens are taken.
"""

from collections.abc import Collection

from msgspec.structs import replace

from webhook.controller.terms import Term
from webhook.controller.world import World
from webhook.ledger.account import Account, NamespaceState
from webhook.ledger.versions import Version, Versions


class Reopening:
    """The decisions of one term."""

    def __init__(self, term: Term, versions: Versions, world: World) -> None:
        self._term = term
        self._versions = versions
        self._world = world
        self._under_way: dict[str, Collection[str]] = {}
        self._waited_for = ""

    def must_wait(self, version: Version) -> bool:
        """Whether another account may hold any namespace, and this one does not remember its own."""
        if self._is_remembered(version):
            return False
        names = (self._waited_for, *self._versions.names())  # mostly it is still the same one
        others = (self._versions.newest(name) for name in names if name != version.name)
        found = next((each for each in others if each is not None and self._may_hold_any(each)), None)
        self._waited_for = found.name if found else ""
        return found is not None

    def begin(self, claimed: Version) -> Account | None:
        """The account without its pods, whose namespaces nobody else opens until it has `ended`.

        None while it is not known which namespaces the others have.
        """
        if self.must_wait(claimed):
            return None
        account = self._account(claimed)
        self._under_way[claimed.name] = account.namespaces.keys()
        return account

    def ended(self, name: str) -> None:
        """The write that was begun is stored, or never will be."""
        self._under_way.pop(name, None)

    def is_under_way(self, name: str) -> bool:
        """Whether a write was begun, and nobody has looked yet how it has ended."""
        return name in self._under_way

    def _is_remembered(self, version: Version) -> bool:
        remembered = self._versions.remembered(version.name)
        return remembered is not None and remembered.uid == version.quota.uid

    def _account(self, claimed: Version) -> Account:
        """What it was; for a new TenantQuota the namespaces that are its tenant's by now and in no other account.

        What one of its name, now deleted, had promised in another tenant's namespaces moves with them from here.
        """
        remembered = self._versions.remembered(claimed.name)
        before = remembered.account if remembered else Account()
        if self._is_remembered(claimed):
            return replace(before, term=self._term.name)
        taken = self._taken(claimed.name)
        wanted = [namespace for namespace, tenant in self._world.wanted().items() if tenant == claimed.name]
        namespaces: dict[str, NamespaceState] = {each: "closed" for each in before.namespaces if each not in taken}
        namespaces |= {each: "open" for each in wanted if each not in taken}
        pods, reservations = (
            tuple(each for each in holders if each.namespace in namespaces)
            for holders in (before.pods, before.reservations)
        )
        gangs = tuple(each for each in before.gangs if each.namespace in namespaces)
        return Account(term=self._term.name, namespaces=namespaces, pods=pods, reservations=reservations, gangs=gangs)

    def _taken(self, name: str) -> set[str]:
        """The namespaces that others have, or open by a write under way; a seal tells that theirs has ended."""
        taken: set[str] = set()
        for other in self._versions.names():
            version = self._versions.newest(other)
            if other != name and version is not None:
                taken |= version.account.namespaces.keys()
                taken |= set() if version.sealed else set(self._under_way.get(other, ()))
        return taken

    def _may_hold_any(self, version: Version) -> bool:
        """Whether nobody knows which namespaces it has: it is not ours yet, or is to be rebuilt from what it was."""
        if version.account.newer or not self._term.bears(version.account):
            return True
        return not version.sealed and self._is_remembered(version)
