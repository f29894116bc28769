"""Reads and writes TenantQuotas: each read is a quorum read, each write a compare-and-swap by uid and resourceVersion.

Source: https://kubernetes.io/docs/reference/using-api/api-concepts/#resource-versions (an unset resourceVersion is the
most recent), and #patch-and-apply on optimistic locking of PUT.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import msgspec

from webhook.kube.client import Client, listed_objects, path
from webhook.kube.errors import Conflict, Failed, NotFound
from webhook.ledger.account import Account, written_account
from webhook.ledger.slot_sums import booked_of, free_for_queue, left_of, used_of
from webhook.ledger.versions import Version, Versions, WorkingCopy
from webhook.objects.view import Tree
from webhook.policy.quota.budgets import in_force
from webhook.policy.quota.tenant_quotas import API_VERSION, PLURAL, read_tenant_quota, tenant_quota_of
from webhook.policy.quota.tenant_status import Count, usage_status
from webhook.policy.values.tenants import QuotaRow, Tenant, Usage

WriteOutcome = Literal["written", "conflict", "failed"]


@dataclass(eq=False, slots=True)
class KubernetesStore:
    """Accounts in TenantQuotas' statuses. `versions` learns each version; `report` is called after each write.

    `is_active`: the policy has the tier and the flavor of a row. `rank` returns the value of a tier.
    """

    client: Client
    versions: Versions
    clock: Callable[[], float] = time.monotonic
    report: Callable[[WriteOutcome], None] = lambda _: None
    is_active: Callable[[QuotaRow], bool] = lambda _: True
    rank: Callable[[str | None], int] = lambda _: 0

    def subscribe(self, listener: Callable[[str], None]) -> None:
        self.versions.subscribe(listener)

    def newest(self, name: str) -> Version | None:
        return self.versions.newest(name)

    async def get(self, name: str) -> Version | None:
        began = self.clock()
        try:
            tree = await self.client.get(path(API_VERSION, PLURAL, name=name))
        except NotFound:
            self.versions.forget(name)
            return None
        return self.versions.learned(tenant_quota_of(tree), began)

    async def every(self) -> list[Version]:
        """Return all stored versions. Raises ApiError."""
        began, pages = self.clock(), self.client.list_pages(path(API_VERSION, PLURAL))
        return [self.versions.learned(read_tenant_quota(raw), began) async for raw in listed_objects(pages)]

    async def put(self, copy: WorkingCopy) -> Version:
        began, before = self.clock(), copy.version.quota
        # A resourceVersion only grows, so the one that this write replaces is the account's revision.
        stored, revision = before.resource_version, copy.version.account.revision + 1
        account = msgspec.structs.replace(copy.account, revision=int(stored) if stored.isdecimal() else revision)
        account = account.sealed(before.uid) if copy.sealed else account.unsealed()
        # The usage is of the rows that apply with this write, which may note the begin or the end of a grant.
        tenant = in_force(copy.version.active, before.status | copy.changes)
        booked = copy.booked if tenant == copy.version.active else booked_of(account, tenant)
        left = left_of(booked, account.entries, tenant, self.rank)
        count = msgspec.structs.replace(count_of(account, tenant, booked=booked), left=left)
        usage = usage_status(tenant, count, before.status, self.is_active)
        body: Tree = {
            "apiVersion": API_VERSION,
            "kind": "TenantQuota",
            "metadata": {"name": before.name, "uid": before.uid, "resourceVersion": before.resource_version},
            "status": before.status | usage | copy.changes | {"ledger": written_account(account)},
        }
        outcome: WriteOutcome = "failed"
        try:
            tree = await self.client.replace(f"{path(API_VERSION, PLURAL, name=before.name)}/status", body)
            outcome = "written"
        except Conflict:
            outcome = "conflict"
            raise
        finally:
            self.report(outcome)
        written = self.versions.learned(tenant_quota_of(tree), began)
        if copy.sealed and not written.sealed:
            raise Failed(_OLD_SCHEMA, 0)
        return written


_OLD_SCHEMA = (
    "the API server drops status.ledger of a TenantQuota: its CustomResourceDefinition is older than this gpu-tiers; "
    "kubectl apply the chart's crds/"
)


def count_of(account: Account, tenant: Tenant, stale: str = "", booked: Usage | None = None) -> Count:
    """Return the GPUs of an account on its tenant's rows. `booked` is their sum, if the caller knows it."""
    booked = booked_of(account, tenant) if booked is None else booked
    return Count.of(booked, used_of(account, tenant), free_for_queue(booked, account.entries, tenant), stale)
