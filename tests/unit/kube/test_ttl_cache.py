"""Look-ups are shared, stored for a while, and bounded in number."""

import asyncio
import weakref

import pytest

from tests.unit.clock import Clock
from webhook.kube.ttl_cache import TTLCache


class Library:
    """Answers slowly and counts how often it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.open = asyncio.Event()

    async def look_up(self, key: str) -> str:
        self.asked.append(key)
        await self.open.wait()
        return f"{key}, answer {len(self.asked)}"


async def test_those_who_ask_at_once_share_one_look_up():
    library, shared = Library(), TTLCache[str, str](30, 8)
    waiting = [asyncio.create_task(shared.get("job", lambda: library.look_up("job"))) for _ in range(20)]
    await asyncio.sleep(0)
    library.open.set()
    assert set(await asyncio.gather(*waiting)) == {"job, answer 1"}
    assert library.asked == ["job"]


async def test_one_who_gives_up_does_not_end_it_for_the_others():
    library, shared = Library(), TTLCache[str, str](30, 8)
    impatient = asyncio.create_task(shared.get("job", lambda: library.look_up("job")))
    patient = asyncio.create_task(shared.get("job", lambda: library.look_up("job")))
    await asyncio.sleep(0)
    impatient.cancel()
    library.open.set()
    assert await patient == "job, answer 1"


async def test_an_answer_is_asked_for_again_after_its_time():
    clock, library = Clock(0.0), Library()
    library.open.set()
    shared = TTLCache[str, str](30, 8, clock)
    first = await shared.get("job", lambda: library.look_up("job"))
    clock.now = 29.9
    assert await shared.get("job", lambda: library.look_up("job")) == first
    clock.now = 30.1
    assert await shared.get("job", lambda: library.look_up("job")) == "job, answer 2"


class Large:
    """An answer that nobody should hold for long."""


async def test_an_answer_is_dropped_after_its_time():
    clock = Clock(0.0)
    shared = TTLCache[str, Large](30, 8, clock)

    async def large() -> Large:
        return Large()

    first = weakref.ref(await shared.get("job", large))
    assert first() is not None
    clock.now = 30.1
    await shared.get("other", large)
    assert first() is None


async def test_an_error_is_raised_in_all_who_wait_and_not_stored():
    shared = TTLCache[str, str](30, 8)
    asked = 0

    async def fails_once() -> str:
        nonlocal asked
        asked += 1
        await asyncio.sleep(0)
        if asked == 1:
            raise LookupError("gone")
        return "here"

    answers = await asyncio.gather(*(shared.get("job", fails_once) for _ in range(3)), return_exceptions=True)
    assert [type(answer) for answer in answers] == [LookupError] * 3
    assert await shared.get("job", fails_once) == "here"


async def test_the_longest_unused_makes_room():
    library = Library()
    library.open.set()
    shared = TTLCache[str, str](30, 2)
    for key in ("a", "b", "a", "c", "a", "b"):
        await shared.get(key, lambda key=key: library.look_up(key))
    assert library.asked == ["a", "b", "c", "b"]


async def test_closing_ends_what_is_under_way():
    library, shared = Library(), TTLCache[str, str](30, 8)
    waiting = asyncio.create_task(shared.get("job", lambda: library.look_up("job")))
    await asyncio.sleep(0)
    await shared.close()
    with pytest.raises(asyncio.CancelledError):
        await waiting


async def test_who_needs_a_newer_answer_waits_for_one_with_all_who_do():
    clock, library = Clock(0.0), Library()
    shared = TTLCache[str, str](30, 8, clock)

    def ask(since: float) -> asyncio.Task[str]:
        return asyncio.create_task(shared.get("job", lambda: library.look_up("job"), since))

    early = ask(0.0)
    await asyncio.sleep(0)
    clock.now = 1.0
    late = [ask(1.0) for _ in range(3)]
    await asyncio.sleep(0)
    library.open.set()
    assert await early == "job, answer 1"
    assert set(await asyncio.gather(*late)) == {"job, answer 2"}
    assert await ask(0.5) == "job, answer 2", "what began later is new enough"
    clock.now = 2.0
    assert await ask(2.0) == "job, answer 3", "what is kept is too old"
