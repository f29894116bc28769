"""Gives Kueue its quota back for what it admitted and a tenant's rows have no room for, until they have.

Kueue tries a refused release for ever, keeps its quota for it, and says nothing of it.
"""

import asyncio
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Protocol

import structlog

from webhook.kube.errors import ApiError
from webhook.objects.refusal import Unreadable

log = structlog.get_logger(__name__)

PATIENCE = 15.0
"""Seconds for which Kueue may try again by itself: what it preempted for this may end in the meantime."""
RECHECK = 5.0
"""Seconds between two looks whether there is room by now."""
REPEAT = 120.0
"""Seconds after which it is said again of a Workload that it waits."""
FORGOTTEN = timedelta(seconds=3 * REPEAT)
"""Of what waits nobody has said so for so long: the replica that knew of it is gone, and Kueue tries again."""
MOST_KEPT = 1000
"""Releases that are followed at a time; what is refused beyond them stays with Kueue."""


@dataclass(frozen=True, slots=True)
class Release:
    """The update of an object by which Kueue would let it run, and why it was refused.

    `group` names the pods that Kueue lets run together, if it is one of these.
    `waits`: whether the object is still held back, and nothing of it runs. `fits`: whether it would be let in by now.
    """

    namespace: str
    uid: str
    sentence: str
    waits: Callable[[], Awaitable[bool]]
    fits: Callable[[], Awaitable[bool]]
    group: str = ""

    @property
    def key(self) -> str:
        """What tells what Kueue admits as one."""
        return f"{self.namespace}/{self.group}" if self.group else self.uid


class KueueApi(Protocol):
    """What is needed of Kueue's Workloads; each by the uid of its owner."""

    async def evict(self, namespace: str, owner_uid: str, sentence: str, /) -> bool:
        """Take its admission back; False where it has none, and none was taken back."""
        ...

    async def keep_aside(self, namespace: str, owner_uid: str, sentence: str, /) -> bool:
        """Say once more that it waits; False where it does no longer."""
        ...

    async def requeue(self, namespace: str, owner_uid: str, /) -> bool:
        """Let Kueue try again; False where it has not put aside yet what was evicted."""
        ...

    def forgotten(self, older_than: timedelta, /) -> AsyncIterator[tuple[str, str]]:
        """Namespace and uid of what waits, of which nobody has said so for long."""
        ...


@dataclass(slots=True)
class _Kept:
    release: Release
    task: asyncio.Task[None] | None = None
    evicted: bool = False


@dataclass(slots=True)
class KueueEvictions:
    """`tell` it of refused releases, which never waits; run `run` as a task and cancel it."""

    workloads: KueueApi
    leading: Callable[[], bool]
    patience: float = PATIENCE
    recheck: float = RECHECK
    repeat: float = REPEAT
    _kept: dict[str, _Kept] = field(default_factory=dict)
    _tasks: asyncio.TaskGroup | None = None

    def tell(self, release: Release) -> None:
        """Kueue could not release it. It tries again by itself, so the same is told often."""
        kept = self._kept.get(release.key)
        if kept is not None and not kept.evicted:
            kept.release = release
            return
        if kept is not None and kept.task is not None:
            kept.task.cancel()  # Kueue has tried it anew: another Workload, or it was requeued by somebody
        elif len(self._kept) >= MOST_KEPT:
            return
        if self._tasks is not None:
            self._kept[release.key] = anew = _Kept(release)
            anew.task = self._tasks.create_task(self._follow(anew))

    async def run(self) -> None:
        """For ever."""
        async with asyncio.TaskGroup() as tasks:
            self._tasks = tasks
            while True:
                await asyncio.sleep(self.repeat)
                if self.leading():
                    await self._remember()

    async def _remember(self) -> None:
        """Let Kueue try again what a replica evicted that is gone."""
        try:
            async for namespace, uid in self.workloads.forgotten(FORGOTTEN):
                await self.workloads.requeue(namespace, uid)
        except (ApiError, Unreadable) as error:
            log.warning("Kueue's workloads not read", error=str(error))

    async def _follow(self, kept: _Kept) -> None:
        uid, key = kept.release.uid, kept.release.key
        try:
            await self._given_back(kept)
        except (ApiError, Unreadable) as error:  # Kueue tries again, and then we do
            log.warning("Kueue keeps its quota", uid=uid, error=str(error))
        except Exception:
            log.exception("evictions broken", uid=uid)
        finally:
            if self._kept.get(key) is kept:
                del self._kept[key]

    async def _given_back(self, kept: _Kept) -> None:
        """Evict it if it finds no room for a while; let Kueue try again once there is room."""
        await asyncio.sleep(self.patience)
        release = kept.release
        if await release.fits() or not await release.waits():
            return
        kept.evicted = await self.workloads.evict(release.namespace, release.uid, release.sentence)
        if kept.evicted:
            log.info("Kueue's admission taken back", namespace=release.namespace, uid=release.uid)
            await self._until_room(release)

    async def _until_room(self, release: Release) -> None:
        looks = itertools.count(1)
        repeat = max(1, round(self.repeat / self.recheck))
        while True:
            await asyncio.sleep(self.recheck)
            if await release.fits() and await self._requeued(release):
                return
            if next(looks) % repeat == 0 and not await self._still_aside(release):
                return

    async def _requeued(self, release: Release) -> bool:
        try:
            return await self.workloads.requeue(release.namespace, release.uid)
        except (ApiError, Unreadable) as error:
            log.warning("Kueue not told of room", uid=release.uid, error=str(error))
            return False

    async def _still_aside(self, release: Release) -> bool:
        try:
            return await self.workloads.keep_aside(release.namespace, release.uid, release.sentence)
        except (ApiError, Unreadable):
            return True
