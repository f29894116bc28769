"""What becomes of a workload that Kueue admitted and that its tenant's rows have no room for."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

from tests.unit.controller.events_kept import until
from webhook.controller.kueue_evictions import KueueEvictions, Release
from webhook.kube.errors import Unreachable

NO_ROOM = "tenant alpha: h100 allows 1 GPU; this Job asks for 3 in all. Would fit: no tier. See TenantQuota/alpha."


class Kueue:
    """Kueue's Workload of one job, and what is written on it."""

    def __init__(self) -> None:
        self.written: list[str] = []
        self.admitted, self.put_aside, self.away = True, True, False
        self.others_wait: list[tuple[str, str]] = []

    async def evict(self, namespace: str, owner_uid: str, sentence: str, /) -> bool:
        self._answer()
        if self.admitted:
            self.written.append(f"{namespace}/{owner_uid} evicted: {sentence}")
        return self.admitted

    async def keep_aside(self, namespace: str, owner_uid: str, _: str, /) -> bool:
        self._answer()
        self.written.append(f"{namespace}/{owner_uid} waits")
        return self.admitted

    async def requeue(self, namespace: str, owner_uid: str, /) -> bool:
        self._answer()
        if self.put_aside:
            self.written.append(f"{namespace}/{owner_uid} queued")
        return self.put_aside

    async def forgotten(self, _: timedelta, /) -> AsyncIterator[tuple[str, str]]:
        for each in self.others_wait:
            yield each

    def _answer(self) -> None:
        if self.away:
            raise Unreachable("PATCH /apis/kueue.x-k8s.io: no answer")


class Story:
    """A job that Kueue admitted; at first there is no room for it."""

    def __init__(self, *, leads: bool = False, patience: float = 0.01, repeat: float = 300.0) -> None:
        self.kueue = Kueue()
        self.has_room, self.is_held = False, True
        self.evictions = KueueEvictions(self.kueue, lambda: leads, patience, recheck=0.005, repeat=repeat)

    def refuse(self, sentence: str = NO_ROOM, uid: str = "uid-1", group: str = "") -> None:
        """Our webhook refuses the update by which Kueue would release it."""
        self.evictions.tell(Release("team-alpha", uid, sentence, self._waits, self._fits, group))

    async def _waits(self) -> bool:
        return self.is_held

    async def _fits(self) -> bool:
        return self.has_room

    @asynccontextmanager
    async def running(self) -> AsyncIterator["Story"]:
        task = asyncio.create_task(self.evictions.run())
        await asyncio.sleep(0)
        try:
            yield self
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def writes(self, *expected: str) -> None:
        await until(lambda: self.kueue.written == list(expected))

    async def settles(self) -> list[str]:
        await asyncio.sleep(0.08)
        return self.kueue.written


EVICTED, QUEUED = f"team-alpha/uid-1 evicted: {NO_ROOM}", "team-alpha/uid-1 queued"


async def test_kueue_gets_its_quota_back_and_tries_again_once_there_is_room() -> None:
    async with Story().running() as story:
        story.refuse()
        assert await story.settles() == [EVICTED]
        story.has_room = True
        await story.writes(EVICTED, QUEUED)
        assert await story.settles() == [EVICTED, QUEUED], "nothing more comes of it"


async def test_kueue_tries_a_refused_release_many_times_and_it_is_evicted_once() -> None:
    async with Story(patience=0.03).running() as story:
        for _ in range(9):
            story.refuse("an older sentence")
        story.refuse()
        await story.writes(EVICTED)
        assert await story.settles() == [EVICTED]


async def test_a_group_of_pods_is_evicted_once() -> None:
    async with Story().running() as story:
        for uid in ("uid-1", "uid-2", "uid-3"):
            story.refuse(uid=uid, group="sweep")
        await story.writes(EVICTED.replace("uid-1", "uid-3"))
        assert len(await story.settles()) == 1


async def test_what_finds_room_soon_is_left_to_kueue() -> None:
    """What Kueue preempted for it ends in the meantime, and its next try is let through."""
    async with Story(patience=0.03).running() as story:
        story.refuse()
        story.has_room = True
        assert await story.settles() == []


async def test_what_runs_is_never_evicted() -> None:
    """Kueue's next try was let through, and its own pods fill the row now."""
    async with Story().running() as story:
        story.refuse()
        story.is_held = False
        assert await story.settles() == []


async def test_a_release_that_a_person_tried_is_no_business_of_kueues() -> None:
    async with Story().running() as story:
        story.kueue.admitted = False
        story.refuse()
        assert await story.settles() == []


async def test_room_that_comes_before_kueue_has_put_it_aside_is_not_lost() -> None:
    async with Story().running() as story:
        story.kueue.put_aside = False
        story.refuse()
        await story.writes(EVICTED)
        story.has_room = True
        assert await story.settles() == [EVICTED]
        story.kueue.put_aside = True
        await story.writes(EVICTED, QUEUED)


async def test_a_workload_that_kueue_made_anew_is_evicted_anew() -> None:
    """Somebody has changed the job, so Kueue admitted another Workload of it."""
    async with Story().running() as story:
        story.refuse()
        await story.writes(EVICTED)
        story.refuse()
        await story.writes(EVICTED, EVICTED)


async def test_the_api_server_is_away() -> None:
    async with Story().running() as story:
        story.kueue.away = True
        story.refuse()
        assert await story.settles() == []
        story.kueue.away = False
        story.refuse()
        await story.writes(EVICTED)
        story.kueue.away = story.has_room = True
        assert await story.settles() == [EVICTED]
        story.kueue.away = False
        await story.writes(EVICTED, QUEUED)


async def test_while_it_waits_that_is_said_again() -> None:
    async with Story(repeat=0.03).running() as story:
        story.refuse()
        await story.writes(EVICTED, "team-alpha/uid-1 waits")
        story.kueue.admitted = False
        await story.writes(EVICTED, *["team-alpha/uid-1 waits"] * 2)
        assert len(await story.settles()) == 3, "its Workload is gone"


async def test_the_leader_remembers_what_a_replica_evicted_that_died() -> None:
    for leads, expected in ((True, "team-alpha/uid-9 queued"), (False, None)):
        async with Story(leads=leads, repeat=0.03).running() as story:
            story.kueue.others_wait = [("team-alpha", "uid-9")]
            assert (await story.settles())[:1] == ([expected] if expected else [])
