"""Changes one tenant's account in its store by compare-and-swap, with one write for all changes that wait.

After a conflict it begins again. A change holds once a write of this process has won that began after the change was
asked for, or once a read that began since then shows it. A shortfall needs an equally fresh read. A change without an
answer in time raises TryAgain.
"""

import asyncio
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from webhook.kube.errors import ApiError, Conflict
from webhook.ledger.draft import NotNow
from webhook.ledger.protocol import TryAgain
from webhook.ledger.versions import Version, WorkingCopy
from webhook.policy.quota.charges import Shortfall


class AccountStore(Protocol):
    """The accounts, each with its versions."""

    def subscribe(self, listener: Callable[[str], None]) -> None:
        """Call a function with the name of each tenant whose account has another version. It must be quick."""

    def newest(self, name: str) -> Version | None:
        """Return the newest version that this process knows; None if it knows no such account."""

    async def get(self, name: str) -> Version | None:
        """Return the version that is stored now; None if there is none. Raises ApiError."""

    async def put(self, copy: WorkingCopy) -> Version:
        """Replace the version from which a working copy was made. Raises Conflict, or another ApiError."""


T = TypeVar("T")

DEADLINE_SECONDS = 3.5
"""The longest that one change may take. The API server waits 5 s for a review, and look-ups take a part of that."""
FIRST_PAUSE = 0.005
LONGEST_PAUSE = 0.2
"""Seconds between attempts after a conflict, at random below a bound that doubles from the first to the longest, so
that two replicas do not conflict again. After an error the bound is the longest."""
LONGEST_SILENCE = 0.5
"""Seconds after which an account that we wait for is read again, because the watch may be broken."""

Edit = Callable[[WorkingCopy], T | NotNow]
"""Changes the copy and returns an answer. It is called again for each new version. If it raises, it has changed
nothing, and the caller gets the exception."""


@dataclass(eq=False, slots=True)
class _Waiting:
    edit: Edit[Any]
    arrived: float
    patience: float
    fresh: bool
    dry: bool
    done: asyncio.Future[Any]
    reason: str = "the API server has not answered"
    answer: Any = None


class AccountWriter:
    """The changes of one TenantQuota that this process makes, one write at a time."""

    def __init__(self, name: str, store: AccountStore, clock: Callable[[], float] = time.monotonic) -> None:
        self._name = name
        self._store = store
        self._clock = clock
        self._waiting: list[_Waiting] = []
        self._wake = asyncio.Event()
        self._stale = False
        self._task: asyncio.Task[None] | None = None

    def wake(self) -> None:
        self._wake.set()

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def change(self, edit: Edit[T], *, patience: float = 0.0, fresh: bool = True, dry: bool = False) -> T:
        """Return the answer of `edit` once it holds. Raises TryAgain, or what the edit raises.

        A shortfall waits `patience` seconds for news. Without `fresh` the answer of an edit that changes nothing need
        not be confirmed. A `dry` edit is not written.
        """
        waiting = _Waiting(edit, self._clock(), patience, fresh, dry, asyncio.get_running_loop().create_future())
        self._waiting.append(waiting)
        self._wake.set()
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._work())
        try:
            async with asyncio.timeout(DEADLINE_SECONDS):
                answer: T = await waiting.done
                return answer
        except TimeoutError:
            raise TryAgain(waiting.reason) from None
        finally:
            self._leave(waiting)

    def _leave(self, waiting: _Waiting) -> None:
        if waiting in self._waiting:
            self._waiting.remove(waiting)
            self._wake.set()

    async def _work(self) -> None:
        pause = FIRST_PAUSE
        while self._waiting:
            self._wake.clear()
            try:
                if not await self._attempt():
                    await self._news()
                pause = FIRST_PAUSE
            except Conflict:
                self._stale = True
                await asyncio.sleep(random.uniform(0, pause))  # noqa: S311 - spreads load, hides nothing
                pause = min(2 * pause, LONGEST_PAUSE)
            except ApiError as error:
                self._stale = True
                for each in self._waiting:
                    each.reason = str(error)
                await asyncio.sleep(random.uniform(0, LONGEST_PAUSE))  # noqa: S311

    async def _attempt(self) -> bool:
        """Answer all that one version can answer. Return False if the others need another version."""
        # 1. Take the newest version that is known, or read it, and all edits that wait now.
        version = None if self._stale else self._store.newest(self._name)
        if version is None:
            version = await self._store.get(self._name)
            self._stale = False
        batch = list(self._waiting)
        if version is None:
            for each in batch:
                self._fail(each, TryAgain(f"TenantQuota {self._name} does not exist"))
            return True

        # 2. Apply the edits to one copy one after another, so that each sees those before it. A dry one has its own.
        copy = WorkingCopy(version)
        for each in batch:
            try:
                each.answer = each.edit(WorkingCopy(version) if each.dry else copy)
            except Exception as error:  # noqa: BLE001 - the caller's own
                self._fail(each, error)

        # 3. Write all changes at once. If another replica has written meanwhile, all edits are called again.
        written = copy.changed
        if written:
            await self._store.put(copy)

        # 4. Answer edits that were written, and those that changed nothing if the version is new enough for them.
        return self._answer(batch, version, written=written)

    def _answer(self, batch: list[_Waiting], version: Version, *, written: bool) -> bool:
        now, waits = self._clock(), False
        for each in batch:
            if each.done.done():
                self._leave(each)  # its caller has given up, and calling it again would never end
                continue
            confirmed = written and not each.dry
            if not confirmed and each.fresh and version.as_of < each.arrived:
                self._stale = True  # read it again before this one is answered
            elif isinstance(each.answer, NotNow) and not each.answer.soon:
                self._fail(each, TryAgain(each.answer.reason))
            elif isinstance(each.answer, NotNow):
                each.reason, waits = each.answer.reason, True
            elif isinstance(each.answer, Shortfall) and now < each.arrived + each.patience:
                waits = True
            else:
                self._leave(each)
                each.done.set_result(each.answer)
        return self._stale or not waits

    def _fail(self, waiting: _Waiting, error: Exception) -> None:
        self._leave(waiting)
        if not waiting.done.done():
            waiting.done.set_exception(error)

    async def _news(self) -> None:
        """Wait for another version, another edit, or the end of an edit's patience."""
        now = self._clock()
        ends = [each.arrived + each.patience - now for each in self._waiting if isinstance(each.answer, Shortfall)]
        try:
            async with asyncio.timeout(max(min([*ends, LONGEST_SILENCE]), 0.0)):
                await self._wake.wait()
        except TimeoutError:
            self._stale = True
