"""Writes the status of TenantQuotas, only where it changed and at most once a second each."""

from collections.abc import Callable
from datetime import UTC, datetime

import structlog

from webhook.cluster.live import LiveCluster
from webhook.controller.rounds import Rounds
from webhook.kube.client import Client
from webhook.kube.errors import ApiError, NotFound
from webhook.kube.paths import path
from webhook.kube.wire import RFC_3339
from webhook.policy.quota.conditions import conditions_of
from webhook.policy.quota.tenant_quotas import API_VERSION, PLURAL, TenantQuota
from webhook.policy.quota.usage_status import Count, usage_status
from webhook.policy.values.tenants import Tenant
from webhook.policy.values.tier_policy import TierPolicy

log = structlog.get_logger(__name__)

INTERVAL = 1.0
"""Seconds between two rounds at least."""
RECHECK = 30.0
"""Seconds after which a round comes unasked: it repeats what could not be written."""


class TenantStatusWriter:
    """Keeps statuses up to date. `wake` it after each change of usage; changes in the cluster wake it by themselves.

    `count_of` gives a tenant's usage now, `policy` the policy in force. Run `run` as a task and cancel it.
    """

    def __init__(
        self,
        client: Client,
        cluster: LiveCluster,
        policy: Callable[[], TierPolicy],
        count_of: Callable[[Tenant], Count],
    ) -> None:
        self._client = client
        self._cluster = cluster
        self._policy = policy
        self._count_of = count_of
        self._rounds = Rounds(INTERVAL, RECHECK)
        self._failed: dict[str, str] = {}
        cluster.subscribe(self.wake)

    def wake(self) -> None:
        """Usage or the policy has changed."""
        self._rounds.wake()

    async def run(self) -> None:
        """Write for ever, once everything has been read."""
        await self._cluster.wait_synced()
        await self._rounds.run(self._round)

    async def _round(self) -> None:
        for found in self._cluster.tenant_quotas():
            await self._bring_up_to_date(found)

    async def _bring_up_to_date(self, found: TenantQuota) -> None:
        count = self._count_of(found.tenant) if found.tenant else Count()
        overlap, now = self._cluster.overlap(found.name), datetime.now(UTC).strftime(RFC_3339)
        conditions = conditions_of(found, overlap, self._policy(), count, now)
        status = {**conditions, **usage_status(found.tenant, count, found.status)}
        if status != found.status:
            await self._write(found.name, status | {"ledger": None})  # an account that nobody keeps is worse than none

    async def _write(self, name: str, status: dict[str, object]) -> None:
        try:
            await self._client.patch(f"{path(API_VERSION, PLURAL, name=name)}/status", {"status": status})
            self._failed.pop(name, None)
        except NotFound:
            return
        except ApiError as error:
            if self._failed.get(name) != str(error):
                log.warning("tenant status not written", tenant=name, error=str(error))
            self._failed[name] = str(error)
