"""The events of an API server that does what it is told, or can't be reached."""

import asyncio
from collections.abc import Callable
from typing import Any

from webhook.kube.errors import ApiError, Conflict, NotFound

Tree = dict[str, Any]


class StoredEvents:
    """A fake of `webhook.kube.client.Client`: events by path, with resourceVersions as the API server has them.

    `fault`, if there is one, is raised instead of an answer.
    """

    def __init__(self) -> None:
        self.events: dict[str, Tree] = {}
        self.requests: list[str] = []
        self.fault: ApiError | None = None

    async def create(self, path: str, body: Tree) -> Tree:
        await self._asked("POST", path)
        place = f"{path}/{body['metadata']['name']}"
        if place in self.events:
            raise Conflict("already exists", 409)
        return self._stored(place, body)

    async def patch(self, path: str, body: Tree) -> Tree:
        await self._asked("PATCH", path)
        if path not in self.events:
            raise NotFound("not found", 404)
        there = self.events[path]
        if body.get("metadata", there["metadata"])["resourceVersion"] != there["metadata"]["resourceVersion"]:
            raise Conflict("the object has been modified", 409)
        return self._stored(path, there | {key: value for key, value in body.items() if key != "metadata"})

    def about(self, name: str) -> list[tuple[str, int, str]]:
        """Reason, count and message of the events about an object."""
        found = [each for each in self.events.values() if each["involvedObject"]["name"] == name]
        return [(each["reason"], each["count"], each["message"]) for each in found]

    async def _asked(self, method: str, path: str) -> None:
        self.requests.append(f"{method} {path}")
        await asyncio.sleep(0)
        if self.fault is not None:
            raise self.fault

    def _stored(self, place: str, event: Tree) -> Tree:
        before = self.events.get(place, {"metadata": {"resourceVersion": "0"}})["metadata"]["resourceVersion"]
        self.events[place] = event | {"metadata": event["metadata"] | {"resourceVersion": str(int(before) + 1)}}
        return self.events[place]


async def until(holds: Callable[[], bool]) -> None:
    """Wait for what a task is about to do."""
    async with asyncio.timeout(60):
        while not holds():  # noqa: ASYNC110 - nothing tells of it
            await asyncio.sleep(0.001)
