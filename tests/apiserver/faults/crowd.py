"""People and controllers who want pods: they try again after an error, and after a refusal once there is room."""

import asyncio
import random
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress

from .api import AGAIN, ERROR, EVICTED, IN, LOST, REFUSED, Api, Tree
from .plan import Plan, Wish

Rows = Counter[tuple[str, str | None]]
"""GPUs by tenant and row."""


class Crowd:
    """The wishes of a plan. `place` says what has become of each."""

    def __init__(self, api: Api, plan: Plan) -> None:
        self._api = api
        self._plan = plan
        self._given_up = asyncio.Event()
        self._early: list[asyncio.Task[None]] = []
        self._inside: Rows = Counter()
        self._unsure: set[Wish] = set()
        self._jobs: dict[tuple[str, str], asyncio.Task[Tree]] = {}
        self.place: dict[Wish, str] = {}
        self.answers: Counter[str] = Counter()
        self.last_error = 0.0

    async def want(self) -> None:
        """Try until all that fits is in, or until they give up."""
        late = (self._want(wish) for wish in self._plan.wishes if not wish.early)
        await asyncio.gather(*self._early, *late)

    async def come_early(self) -> None:
        """Have the pods on their nodes that come before the storm."""
        early = [wish for wish in self._plan.wishes if wish.early]
        self._early = [asyncio.create_task(self._want(wish)) for wish in early]
        while not all([await self._api.is_placed(wish) for wish in early]):  # noqa: ASYNC110 - the scheduler does it
            await asyncio.sleep(1)

    def give_up(self) -> None:
        """Let those that wait for room wait no longer."""
        self._given_up.set()

    def left_out(self) -> list[Wish]:
        """Return the wishes that would fit and are not in."""
        return [wish for wish, what in self.place.items() if what == REFUSED and self._fits(wish)]

    def is_settled(self) -> bool:
        """Return whether all have an answer, nobody else goes, and no room is left for those who wait."""
        going = any(what == IN and wish.lives is not None for wish, what in self.place.items())
        return len(self.place) == len(self._plan.wishes) and not going and not self.left_out()

    async def _want(self, wish: Wish) -> None:
        await asyncio.sleep(wish.at)
        await self._get_in(wish)
        while wish.by_dra and self.place[wish] == IN and await self._evicted(wish):
            self._note(wish, EVICTED)
            await self._get_in(wish)
        if self.place[wish] == IN and wish.lives is not None:
            await asyncio.sleep(wish.lives)
            await self._answered(self._api.delete, wish)

    async def _get_in(self, wish: Wish) -> None:
        while await self._answered(self._create, wish) == REFUSED and not self._given_up.is_set():
            await self._room(wish)

    async def _evicted(self, wish: Wish) -> bool:
        """Wait until the pod is evicted, or until they give up; look about once a second."""
        while not self._given_up.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(self._given_up.wait(), random.uniform(0.5, 1.5))  # noqa: S311
            if await self._api.is_gone(wish):
                return True
        return False

    async def _create(self, wish: Wish) -> str:
        """Admission comes before AlreadyExists: a refusal after a lost answer may be that of a pod that is in."""
        answer = await self._api.create(wish, await self._owner(wish) if wish.gang else None)
        if answer in (ERROR, LOST):
            self._unsure.add(wish)
        return IN if answer == REFUSED and wish in self._unsure and await self._api.exists(wish) else answer

    def _owner(self, wish: Wish) -> "asyncio.Task[Tree]":
        """Return its Job, which the first of its pods that comes has made."""
        key = wish.namespace, wish.gang
        if key not in self._jobs:
            self._jobs[key] = asyncio.create_task(self._api.job(wish, len(self._plan.members(wish))))
        return self._jobs[key]

    async def _room(self, wish: Wish) -> None:
        """Wait for room, or until they give up; look about once a second."""
        while not self._given_up.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(self._given_up.wait(), random.uniform(0.5, 1.5))  # noqa: S311
            if self._fits(wish):
                return

    async def _answered(self, ask: Callable[[Wish], Awaitable[str]], wish: Wish) -> str:
        """Ask until there is an answer, as a controller does, with pauses that grow."""
        pause = 0.1
        while (answer := await ask(wish)) in (AGAIN, ERROR, LOST):
            self.answers[answer] += 1
            self.last_error = time.monotonic()
            await asyncio.sleep(pause * random.uniform(0.5, 1.5))  # noqa: S311
            pause = min(2 * pause, 4)
        self._note(wish, answer)
        return answer

    def _note(self, wish: Wish, answer: str) -> None:
        self.answers[answer] += 1
        change = (answer == IN) - (self.place.get(wish) == IN)
        self.place[wish] = answer
        for row in (None, wish.tier):
            self._inside[self._plan.team_of(wish.namespace).name, row] += change * wish.gpus

    def _fits(self, wish: Wish) -> bool:
        """Return whether the wish has room next to those that are in, as far as the answers show."""
        team = self._plan.team_of(wish.namespace)
        rows = ((row, hard) for row, hard in team.rows.items() if row in (None, wish.tier))
        return all(self._inside[team.name, row] + wish.gpus <= hard for row, hard in rows)
