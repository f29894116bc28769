"""The end of a pod: how its containers ended and what they said, as long as the pod could be seen."""

import asyncio
from collections.abc import Mapping
from datetime import datetime

import msgspec

from webhook.kube.client import Client
from webhook.kube.paths import path
from webhook.kube.reflector import Reflector, Source
from webhook.objects.view import View, read
from webhook.policy.checkpoint.work_lost import ContainerEnd

LONGEST = 3600.0
"""Seconds for which the end of a pod is waited for: a grace period is rarely longer."""


class _Terminated(View, frozen=True):
    message: str = ""
    exit_code: int = 0
    finished_at: datetime | None = None


class _State(View, frozen=True):
    terminated: _Terminated | None = None


class _ContainerStatus(View, frozen=True):
    name: str = ""
    state: _State = _State()


class _Status(View, frozen=True):
    container_statuses: tuple[_ContainerStatus, ...] = ()

    @property
    def ends(self) -> Mapping[str, ContainerEnd]:
        """The ends of the containers that have ended, by name."""
        found = ((each.name, each.state.terminated) for each in self.container_statuses)
        return {name: _end(terminated) for name, terminated in found if terminated}

    @property
    def ended(self) -> bool:
        return bool(self.container_statuses) and all(each.state.terminated for each in self.container_statuses)


def _end(told: _Terminated) -> ContainerEnd:
    return ContainerEnd(told.message, told.exit_code, told.finished_at.timestamp() if told.finished_at else None)


class _Pod(View, frozen=True):
    status: _Status = _Status()


class Ended(msgspec.Struct, frozen=True):
    """The ends of a pod's containers by name; `seen`: all of them were seen to have ended."""

    containers: Mapping[str, ContainerEnd]
    seen: bool


async def end_of(client: Client, namespace: str, name: str, uid: str) -> Ended:
    """Wait until the containers of a pod have ended, or until it is gone."""
    end = _End()

    async def project(raw: msgspec.Raw) -> _Status:
        return read(raw, _Pod).status

    def changed(key: str, status: _Status | None) -> None:
        if key == uid:
            end.seen(status)

    source = Source(path("v1", "pods", namespace), {"fieldSelector": f"metadata.name={name}"}, key="uid")
    reflector = Reflector(client, source, project, changed, lambda found: changed(uid, found.get(uid)))
    following = asyncio.create_task(reflector.run())
    try:
        async with asyncio.timeout(LONGEST):
            await end.reached.wait()
    except TimeoutError:
        pass
    finally:
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
    return Ended(end.last.ends, end.last.ended)


class _End:
    """The last seen status of a pod, and whether it is the end."""

    def __init__(self) -> None:
        self.last = _Status()
        self.reached = asyncio.Event()

    def seen(self, status: _Status | None) -> None:
        self.last = status or self.last
        if status is None or status.ended:
            self.reached.set()
