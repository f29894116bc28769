"""Brings the accounts and the conditions in line with the pods that the leader sees."""

import time
from collections.abc import Callable
from dataclasses import replace

import structlog

from webhook.controller.changes import Changes
from webhook.controller.expiry import Expiry
from webhook.controller.proof import Proof
from webhook.controller.settling import Settling
from webhook.controller.terms import Term, for_each
from webhook.controller.world import Pods, World
from webhook.ledger.account import Account
from webhook.ledger.pod_view import PodView
from webhook.ledger.protocol import TryAgain
from webhook.ledger.rewrite import rewritten
from webhook.ledger.stored_quotas import StoredQuotas, count_of
from webhook.ledger.stranded_gangs import stranded_gangs
from webhook.ledger.versions import Version
from webhook.ledger.working_copy import WorkingCopy
from webhook.policy.quota.usage_status import Status

log = structlog.get_logger(__name__)

RECHECK_SECONDS = 5.0
"""After this a round comes unasked: it repeats what could not be written."""


class Counting:
    """The writes of one term."""

    def __init__(
        self,
        term: Term,
        stored: StoredQuotas,
        view: PodView,
        world: World,
        changes: Changes,
        pods: Pods,
        proof: Proof,
        horizon: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._term = term
        self._versions = stored.versions
        self._view = view
        self._world = world
        self._changes = changes
        self._pods = pods
        self._expiry = Expiry(horizon, proof, clock)
        self._settling = Settling(clock)
        self._clock = clock

    async def round(self) -> None:
        """Write what has become another since the last round. Raises Superseded."""
        self._view.drop_overdue()
        names = {*self._changes.take(self._versions), *self._expiry.aged(), *self._settling.overdue()}
        await for_each(names, self._write)

    def until_due(self) -> float:
        """Seconds until something is due that nobody tells of."""
        due = (self._expiry.due(), self._settling.due(), self._view.next_end())
        return min([RECHECK_SECONDS, *(max(each - self._clock(), 0.0) for each in due if each is not None)])

    async def _write(self, name: str) -> None:
        version = self._versions.newest(name)
        if version is None or not version.sealed:
            self._settling.forget(name)
            return
        self._term.bears(version.account)
        self._expiry.note(name, version.account)
        lapsed = await self._expiry.lapsed(name, version.account)

        def counted(version: Version, before: Account) -> tuple[Account, Status]:
            account = rewritten(before, self._view, lapsed)
            count = count_of(account, version.in_force, "; ".join(self._pods.problems()))
            stranded = () if count.stale else stranded_gangs(account, version.in_force, self._view)
            self._world.tell_stranded(name, stranded)
            return account, self._world.status(version, replace(count, stranded=stranded))

        def edit(copy: WorkingCopy) -> None:
            if copy.sealed:
                account, status = counted(copy.version, copy.account)
                copy.put(copy.account if account == copy.account else account, changes=status)

        if self._settling.may_wait(version, *counted(version, version.account)):
            return
        try:
            await self._term.change(name, edit)
        except TryAgain as problem:
            log.warning("tenant status not written", tenant=name, error=str(problem))
            self._changes.tenant(name)
