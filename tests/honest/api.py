"""The simulated API server of a history, and the client of a replica: slow answers, lagging watches, discovery."""

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Any

from tests.honest.objects import CLAIM_TEMPLATES, CLAIMS, DEVICE_CLASSES, EVENTS, KINDS, Key, Tree, copy
from tests.ledger.simulated_api import TENANT_QUOTAS, SimulatedApi, place_of
from tests.ledger.simulated_client import Request, SimulatedClient
from tests.ledger.view import View
from webhook.kube.client import Event
from webhook.kube.errors import NotFound

WATCH_SECONDS = 300.0
"""So long the API server serves a watch. The first ones end sooner, because replicas did not start together."""


def _served(paths: Iterable[str]) -> dict[str, dict[str, list[str]]]:
    """Return the served plurals, by group and version."""
    found: dict[str, dict[str, list[str]]] = {}
    for path in paths:
        root, group, *rest = path.strip("/").split("/")
        if root == "apis":
            version, plural = rest
            found.setdefault(group, {}).setdefault(version, []).append(plural)
    return found


class Api(SimulatedApi):
    """The stored objects. Trees are read in place: nobody may change them. `with_claims`: it serves ResourceClaims."""

    def __init__(self, *, with_claims: bool = False) -> None:
        super().__init__()
        claims = (CLAIMS, CLAIM_TEMPLATES, DEVICE_CLASSES)
        others = [each for each in KINDS.values() if each not in claims]
        self.served = _served([*others, TENANT_QUOTAS, *(claims if with_claims else ())])

    def find(self, kind: str, key: Key) -> Tree | None:
        return self.history(kind).objects.get(key)

    def all(self, kind: str) -> list[Tree]:
        return list(self.history(kind).objects.values())

    def versions(self, *without: str) -> tuple[int, ...]:
        """Return what tells one state of the cluster from another; events are no part of it."""
        skipped = (EVENTS, *without)
        return tuple(each.version for kind, each in self._histories.items() if kind not in skipped)

    def still_there(self, kind: str, tree: Tree) -> Tree | None:
        """Return an object as it is now, None where it is gone or another one bears its name."""
        now = self.find(kind, (tree["metadata"]["namespace"], tree["metadata"]["name"]))
        return now if now is not None and now["metadata"]["uid"] == tree["metadata"]["uid"] else None


class ReplicaClient(SimulatedClient):
    """A client whose requests take about `latency` seconds and whose watches lag by up to `lag` seconds."""

    def __init__(self, api: Api, latency: float, lag: float) -> None:
        super().__init__(api)
        self._served = api.served
        self._latency = latency
        self._lag = lag
        self._ended: set[int] = set()

    async def _passed(self, request: Request) -> Any:
        if self._latency:
            await asyncio.sleep(self._latency * random.uniform(0.2, 1.8))
        return await super()._passed(request)

    async def _events(
        self, view: View, since: int, selects: Callable[[Tree], bool], *, metadata_only: bool
    ) -> AsyncIterator[Event]:
        source = super()._events(view, since, selects, metadata_only=metadata_only)
        running = asyncio.get_running_loop()
        end = running.time() + (WATCH_SECONDS if id(view) in self._ended else random.uniform(20, WATCH_SECONDS))
        pending: asyncio.Future[Event] | None = None
        try:
            while True:
                pending = pending or asyncio.ensure_future(anext(source))
                done, _ = await asyncio.wait({pending}, timeout=max(end - running.time(), 0))
                if not done:
                    self._ended.add(id(view))
                    return
                event, pending = pending.result(), None
                if self._lag:
                    await asyncio.sleep(self._lag * random.uniform(0, 1))
                yield event
        except StopAsyncIteration:
            return
        finally:
            if pending is not None:
                pending.cancel()
                await asyncio.gather(pending, return_exceptions=True)

    async def get(self, path: str, *, seconds: float = 5.0, accept: str = "") -> Tree:  # noqa: ARG002 - the client's
        parts, served = path.strip("/").split("/"), self._served
        if parts == ["version"]:
            return {"major": "1", "minor": "37"}
        if parts == ["apis"]:
            first = [f"{group}/{next(iter(versions))}" for group, versions in served.items()]
            return {"groups": [{"preferredVersion": {"groupVersion": each}} for each in first]}
        if parts == ["api", "v1"]:
            return {"resources": []}
        if parts[0] == "apis" and len(parts) == 2:
            if parts[1] not in served:
                raise NotFound(f"{path}: HTTP 404", 404)
            return {"versions": [{"groupVersion": f"{parts[1]}/{each}"} for each in served[parts[1]]]}
        if parts[0] == "apis" and len(parts) == 3:
            return {"resources": [{"name": each} for each in served.get(parts[1], {}).get(parts[2], ())]}
        return await super().get(path, seconds=seconds)

    async def patch(self, path: str, body: Tree, *, seconds: float = 5.0, **_: object) -> Tree:
        """Patch strategically: gates and conditions merge by their names."""
        await self._passed(Request("PATCH", path, body, seconds))
        place = place_of(path)
        now = _patched(self.api.read(place), body)
        if "resourceVersion" not in body.get("metadata", {}):
            now["metadata"].pop("resourceVersion", None)
        return self.api.replace(place, now)


def _patched(stored: Tree, patch: Tree) -> Tree:
    now: Tree = copy(stored)
    for name, value in patch.items():
        if name == "schedulingGates":
            gone = {each["name"] for each in value if each.get("$patch") == "delete"}
            now[name] = [each for each in now.get(name, []) if each["name"] not in gone]
            if not now[name]:
                del now[name]
        elif name == "conditions":
            types = {each["type"] for each in value}
            now[name] = [each for each in now.get(name, []) if each["type"] not in types] + list(value)
        elif isinstance(value, dict):
            now[name] = _patched(now.get(name, {}), value)
        elif value is None:
            now.pop(name, None)
        else:
            now[name] = value
    return now
