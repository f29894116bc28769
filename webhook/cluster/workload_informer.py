"""Follows the workloads of some kinds; each is reduced at once to what the caller keeps of it."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Generic, TypeVar

import msgspec

from webhook.kube.client import Client
from webhook.kube.discovery import Discovery
from webhook.kube.errors import ApiError, NoSuchApi, NotFound
from webhook.kube.paths import path
from webhook.kube.reflector import Reflector, Source
from webhook.kube.wire import metadata_of
from webhook.objects.group_kind import GroupKind
from webhook.objects.refusal import Unreadable
from webhook.policy.workloads.kinds.table import KindRow

log = logging.getLogger(__name__)

T = TypeVar("T")

LISTED_SECONDS = 10.0
"""How long the first lists are waited for. What can't be listed, such as without the right to, is tried on beside."""
SERVED_SECONDS = 30.0
"""After this a kind that the API server does not serve is looked for again: its operator may have been installed."""


class WorkloadInformer(Generic[T]):
    """Follows each of these kinds that the API server serves.

    `project` makes of a workload what is kept of it, None where it has ended; it may look things up. `on_change` gets a
    uid with its new value, None once it is gone or has ended. `on_relist` gets the kind and all that exist of it.
    """

    def __init__(
        self,
        client: Client,
        project: Callable[[KindRow, msgspec.Raw], Awaitable[T | None]],
        on_change: Callable[[str, T | None], None],
        on_relist: Callable[[GroupKind, Mapping[str, T]], None],
    ) -> None:
        self._client = client
        self._project = project
        self._on_change = on_change
        self._on_relist = on_relist
        self._discovery = Discovery(client)
        self._followed: dict[GroupKind, Reflector[T]] = {}
        self.api_versions: dict[str, str] = {}
        """In which version each kind that is followed is read, by its qualified name."""

    @asynccontextmanager
    async def following(self, rows: Callable[[], Iterable[KindRow]]) -> AsyncIterator[None]:
        """Follow the kinds of these rows, and those that come to be served. All have been listed, if they can be."""
        tasks: list[asyncio.Task[None]] = []
        try:
            await self._follow(rows(), tasks)
            with suppress(TimeoutError):
                async with asyncio.timeout(LISTED_SECONDS):
                    for reflector in self._followed.values():
                        await reflector.synced.wait()
            tasks.append(asyncio.create_task(self._follow_later(rows, tasks)))
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self._followed.clear()

    def relist(self) -> None:
        """Read and project all workloads again: the policy has changed."""
        for reflector in self._followed.values():
            reflector.relist()

    async def find(self, row: KindRow, namespace: str, name: str) -> tuple[str, T | None] | None:
        """The uid of the workload of that name and what is kept of it, as the API server has it now; None without one.

        Raises ApiError, also where the kind is not served now.
        """
        try:
            version = await self._discovery.api_version(row.group, row.plural)
            tree = await self._client.get(path(version, row.plural, namespace, name))
        except NoSuchApi:
            raise
        except NotFound:
            return None
        except Unreadable as problem:
            raise ApiError(str(problem)) from problem
        raw = msgspec.Raw(msgspec.json.encode(tree))
        return metadata_of(raw).uid, await self._project(row, raw)

    async def _follow(self, rows: Iterable[KindRow], tasks: list[asyncio.Task[None]]) -> None:
        """Begin to follow what is served and is not followed yet."""
        for row in rows:
            if row.group_kind in self._followed:
                continue
            try:
                version = await self._discovery.api_version(row.group, row.plural)
            except Unreadable:
                self._on_relist(row.group_kind, {})
                continue
            reflector = self._reflector(row, version)
            self._followed[row.group_kind] = reflector
            self.api_versions[row.group_kind.qualified] = version
            tasks.append(asyncio.create_task(reflector.run()))

    async def _follow_later(self, rows: Callable[[], Iterable[KindRow]], tasks: list[asyncio.Task[None]]) -> None:
        while True:
            await asyncio.sleep(SERVED_SECONDS)
            try:
                await self._follow(rows(), tasks)
            except ApiError as error:
                log.warning("kinds not looked for", {"error": str(error)})

    def _reflector(self, row: KindRow, version: str) -> Reflector[T]:
        async def project(raw: msgspec.Raw) -> T | None:
            return await self._project(row, raw)

        def listed(found: Mapping[str, T]) -> None:
            self._on_relist(row.group_kind, found)

        return Reflector(self._client, Source(path(version, row.plural), key="uid"), project, self._on_change, listed)
