"""The end of a pod: what its containers said when they ended, as long as the pod could be seen."""

import asyncio
from dataclasses import dataclass

import msgspec

from webhook.kube.client import Client
from webhook.kube.paths import path
from webhook.kube.reflector import Reflector, Source
from webhook.objects.view import View, read

LONGEST = 3600.0
"""Seconds for which the end of a pod is waited for: a grace period is rarely longer."""


class _Terminated(View, frozen=True):
    message: str = ""


class _State(View, frozen=True):
    terminated: _Terminated | None = None


class _ContainerStatus(View, frozen=True):
    state: _State = _State()


class _Status(View, frozen=True):
    container_statuses: tuple[_ContainerStatus, ...] = ()

    @property
    def messages(self) -> tuple[str, ...]:
        """Of the containers that have ended."""
        return tuple(each.state.terminated.message for each in self.container_statuses if each.state.terminated)

    @property
    def ended(self) -> bool:
        """Whether all containers have."""
        return bool(self.container_statuses) and all(each.state.terminated for each in self.container_statuses)


class _Pod(View, frozen=True):
    status: _Status = _Status()


@dataclass(frozen=True, slots=True)
class Ended:
    """What the containers of a pod said; `seen`: all of them were seen to have ended."""

    messages: tuple[str, ...]
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
    return Ended(end.last.messages, end.last.ended)


class _End:
    """What was seen last of a pod, and whether that is the end of it."""

    def __init__(self) -> None:
        self.last = _Status()
        self.reached = asyncio.Event()

    def seen(self, status: _Status | None) -> None:
        self.last = status or self.last
        if status is None or status.ended:
            self.reached.set()
