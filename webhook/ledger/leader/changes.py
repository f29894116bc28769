"""What has changed since the leader's last round."""

import asyncio
from collections.abc import Iterable

from webhook.ledger.versions import Versions


class Changes:
    """Collects the names of TenantQuotas and of namespaces; the watches tell it.

    `generation` counts how often everything has changed.
    """

    def __init__(self) -> None:
        self._tenants: set[str] = set()
        self._namespaces: set[str] = set()
        self._everything = True
        self._woken = asyncio.Event()
        self.generation = 0

    def tenant(self, name: str) -> None:
        """A TenantQuota has another version, or its last round has failed."""
        self._tenants.add(name)
        self._woken.set()

    def namespace(self, name: str) -> None:
        """A pod of that namespace has changed."""
        self._namespaces.add(name)
        self._woken.set()

    def everything(self) -> None:
        """Namespaces, tenants or the policy have changed."""
        self._everything = True
        self.generation += 1
        self._woken.set()

    def take(self, versions: Versions) -> Iterable[str]:
        """The TenantQuotas that may need a write; from now on changes are collected anew."""
        everything, tenants, namespaces = self._everything, self._tenants, self._namespaces
        self._everything, self._tenants, self._namespaces = False, set(), set()
        for name in versions.names():
            version = versions.newest(name)
            if version and (everything or name in tenants or namespaces & version.account.namespaces.keys()):
                yield name

    async def wait(self, seconds: float) -> None:
        """Until something has changed since this was called last, or for so long."""
        try:
            async with asyncio.timeout(seconds):
                await self._woken.wait()
        except TimeoutError:
            return
        self._woken.clear()
