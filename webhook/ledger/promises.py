"""What a ledger in memory let in, of all tenants: reservations of pods, and the gangs."""

from collections.abc import Callable, Collection, Iterator

from webhook.ledger.account import Account, Gang, GangKey, Holder
from webhook.ledger.pod_view import PodView
from webhook.ledger.rewrite import settled
from webhook.ledger.rewritten_gangs import gangs_seen, promise_key

RESERVATION_SECONDS = 60.0
"""How long a promise holds without its pod or workload being seen. A validating webhook's yes is no create:
ResourceQuota runs after it, other webhooks beside it, and a generateName collision asks again under another uid."""

Key = tuple[str, str]


class Promises:
    """Promises by their keys, each with the time of the clock at which it lapses: nothing here can prove one void.

    The reservation of an heir is kept when its pod is seen, for as long as the preempted pod is there: nothing else
    says who replaces whom.
    """

    def __init__(self, view: PodView, clock: Callable[[], float]) -> None:
        self._view = view
        self._clock = clock
        self._reservations: dict[Key, Holder] = {}
        self._gangs: dict[GangKey, Gang] = {}
        self._lapses: dict[Key, tuple[float, str]] = {}

    def namespaces(self) -> set[str]:
        """Where something is promised."""
        return {namespace for namespace, _ in self._whom()}

    def namespaces_of(self, uid: str) -> set[str]:
        """Where something is promised to that pod or workload."""
        return {namespace for namespace, promised_to in self._whom() if promised_to == uid}

    def account(self, namespaces: Collection[str]) -> Account:
        """What is promised in these namespaces."""
        return Account(
            namespaces=dict.fromkeys(namespaces, "open"),
            reservations=tuple(each for each in self._reservations.values() if each.namespace in namespaces),
            gangs=tuple(each for each in self._gangs.values() if each.namespace in namespaces),
        )

    def keep(self, account: Account, uid: str) -> None:
        """Keep what was booked for a pod or workload into that account; what is promised again lapses later."""
        until = self._clock() + RESERVATION_SECONDS
        for holder in (each for each in account.reservations if each.uid == uid):
            self._reservations[holder.key] = holder
            self._lapses[holder.key] = until, holder.namespace
        for gang in (each for each in account.gangs if each.uid == uid):
            self._gangs[gang.key] = gang
            self._lapses |= {promise_key(gang, each): (until, gang.namespace) for each in gang.promises}

    def catch_up(self, changed: Collection[str]) -> set[str]:
        """Drop what was seen in namespaces that have changed, and what has lapsed; the namespaces of both."""
        now = self._clock()
        lapsed = {key: namespace for key, (until, namespace) in self._lapses.items() if until <= now}
        here = {*changed, *lapsed.values()}
        if here:
            self._catch_up_in(here, lapsed)
        return here

    def _whom(self) -> Iterator[tuple[str, str]]:
        yield from ((each.namespace, each.uid) for each in self._reservations.values())
        yield from self._gangs

    def _catch_up_in(self, namespaces: Collection[str], lapsed: Collection[Key]) -> None:
        before = self.account(namespaces)
        for holder in before.reservations:
            if self._is_over(holder, lapsed):
                del self._reservations[holder.key]
        for gang in before.gangs:
            del self._gangs[gang.key]
        self._gangs |= {each.key: each for each in gangs_seen(before, self._view, lapsed)}
        changes = {promise_key(gang, each) for gang in self._gangs.values() for each in gang.promises}
        waiting = {*self._reservations, *changes}.difference(lapsed)
        self._lapses = {key: lapse for key, lapse in self._lapses.items() if key in waiting}

    def _is_over(self, holder: Holder, lapsed: Collection[Key]) -> bool:
        if settled(holder, self._view):
            return self._view.get(holder.uid) is None or self._view.get(holder.heir_of) is None
        return holder.key in lapsed
