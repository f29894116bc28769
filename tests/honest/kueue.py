"""Kueue, as far as pods see it: its gate is lifted some time after their create, with the flavor that it has chosen."""

from collections.abc import Awaitable, Callable

from tests.honest.api import Api
from tests.honest.life import Life
from tests.honest.objects import ADMITTED, PODS, Tree, is_active, uid_of, waits_for_kueue

AGAIN_SECONDS = 5
"""Kueue tries again after so long, where an admission of it was refused."""


class Kueue:
    """Admits pods when their time has come. `admit` lifts the gate of one and returns whether it could."""

    def __init__(self, api: Api, life: Life, admit: Callable[[Tree], Awaitable[bool]]) -> None:
        self._api = api
        self._life = life
        self._admit = admit
        self._due: dict[str, int] = {}

    def is_busy(self) -> bool:
        return any(map(waits_for_kueue, self._api.all(PODS)))

    async def step(self) -> None:
        now = self._life.second
        for pod in self._api.all(PODS):
            if not waits_for_kueue(pod) or not is_active(pod):
                continue
            due = self._due.setdefault(uid_of(pod), now + int(pod["metadata"]["annotations"][ADMITTED]))
            if now >= due and not await self._admit(pod):
                self._due[uid_of(pod)] = now + AGAIN_SECONDS
