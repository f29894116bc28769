"""Which writes of the leader may wait for more: those by which no row of a quota counts otherwise.

A reservation whose pod exists is charged as the pod will be. To count the pod in its place frees nothing and tells
nobody anything, and each write costs the API server as much as a booking and stands in the way of one.
"""

import time
from collections.abc import Callable

from webhook.ledger.account import Account
from webhook.ledger.account_usage import usage_of
from webhook.ledger.versions import Version
from webhook.policy.quota.usage_status import Status

SETTLE_SECONDS = 0.5
"""So long a reservation may stand beside its pod."""
MOST_SETTLED = 32
"""So many of them at most: each makes every booking's write longer."""


class Settling:
    """The TenantQuotas whose write waits, and since when."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._until: dict[str, float] = {}

    def may_wait(self, version: Version, account: Account, status: Status) -> bool:
        """Whether this account and status need not be written yet in the place of that version's."""
        now, told = self._clock(), _is_told(status, version)
        settles = told and account != version.account and _counts_alike(version, account)
        if settles and now < self._until.setdefault(version.name, now + SETTLE_SECONDS):
            return True
        self.forget(version.name)
        return told and account == version.account

    def forget(self, tenant: str) -> None:
        """Nothing of that TenantQuota waits."""
        self._until.pop(tenant, None)

    def due(self) -> float | None:
        """When the next write must wait no longer, by the clock."""
        return min(self._until.values(), default=None)

    def overdue(self) -> list[str]:
        """The TenantQuotas whose write must wait no longer."""
        now = self._clock()
        return [name for name, until in self._until.items() if until <= now]


def _is_told(status: Status, version: Version) -> bool:
    return all(version.quota.status.get(name) == value for name, value in status.items())


def _counts_alike(version: Version, account: Account) -> bool:
    before, tenant = version.account, version.in_force
    if len(before.reservations) - len(account.reservations) >= MOST_SETTLED or before.pods != account.pods:
        return False
    return usage_of(before, tenant) == usage_of(account, tenant)
