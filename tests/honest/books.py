"""The books as the oracle reads them: the GPUs on each row, as a ledger counts them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tests.honest.objects import Tree
from webhook.ledger.protocol import Ledger
from webhook.policy.quota.tenant_quotas import read_tenant

ByRow = Mapping[str, float]
"""GPUs, by the label of a row."""


@dataclass(frozen=True)
class Books:
    """The GPUs that existing pods use, and all that is booked except what the queue reserves for its head."""

    used: ByRow
    booked: ByRow


def books_of(ledger: Ledger, quota: Tree) -> Books | None:
    """Return the books of a tenant, None where nobody may book."""
    tenant = read_tenant(quota)
    used, usage = ledger.used(tenant), ledger.usage(tenant)
    if not used:
        return None
    queued: Mapping[Any, Any] = ledger.reserved_for_queue(tenant)
    return Books(
        {row.label: float(gpus) for row, gpus in used.items()},
        {row.label: float(gpus - queued.get(row, 0)) for row, gpus in usage.items()},
    )
