"""Lists of all pods and of one namespace's keep apart, so that an older list never has the last word."""

import asyncio
from contextlib import AbstractAsyncContextManager

from webhook.kube.reflector import Listing


class Lists:
    """Lists that go on until they are told to end; `now` are those under way."""

    def __init__(self) -> None:
        self.listing = Listing()
        self.now: list[str] = []
        self._end: dict[str, asyncio.Event] = {}

    async def begin(self, name: str) -> None:
        way = self.listing.of_all() if name == "all" else self.listing.of_a_part()
        self._end[name] = asyncio.Event()
        self._task = asyncio.create_task(self._list(name, way))
        await asyncio.sleep(0.001)

    async def _list(self, name: str, way: AbstractAsyncContextManager[None]) -> None:
        async with way:
            self.now.append(name)
            await self._end[name].wait()
        self.now.remove(name)

    async def end(self, name: str) -> None:
        self._end[name].set()
        await asyncio.sleep(0.001)


async def test_namespaces_are_listed_side_by_side() -> None:
    lists = Lists()
    await lists.begin("alpha")
    await lists.begin("beta")
    assert lists.now == ["alpha", "beta"]


async def test_a_list_of_all_waits_for_those_of_namespaces_and_the_next_of_these_for_it() -> None:
    lists = Lists()
    await lists.begin("alpha")
    await lists.begin("beta")
    await lists.begin("all")
    await lists.begin("gamma")
    await lists.end("alpha")
    assert lists.now == ["beta"]
    await lists.end("beta")
    assert lists.now == ["all"]
    await lists.end("all")
    assert lists.now == ["gamma"]
