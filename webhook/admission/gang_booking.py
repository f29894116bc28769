"""A workload's review as the booking of its gang."""

from webhook.admission.review import Request
from webhook.ledger.protocol import GangBooking
from webhook.objects.group_kind import GroupKind
from webhook.objects.pods import Named
from webhook.objects.view import read
from webhook.policy.quota.gangs import GangDemand
from webhook.policy.values.tenants import Tenant


def gang_booking(request: Request, gang: GangDemand, tenant: Tenant) -> GangBooking:
    """What is booked for it. One that is being created may have no uid yet but the review's, and is generation 1."""
    metadata = read(request.object, Named).metadata
    kind = GroupKind(request.kind.group, request.kind.kind).qualified
    uid, generation = metadata.uid or request.uid, metadata.generation or 1
    return GangBooking(uid, kind, request.namespace, metadata.name, tenant, gang.charges, generation)
