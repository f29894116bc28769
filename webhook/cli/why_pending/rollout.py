"""Finds rollouts that are stuck: their old pods use the quota that their new pods need."""

from collections.abc import Iterable
from decimal import Decimal

from msgspec.structs import replace

from webhook.cli.cluster.one_object import AskedCluster
from webhook.cli.explain.explanation import next_decision, refusal_of
from webhook.cli.explain.replacement import charge_of_existing, evicted_first, ledger_without
from webhook.cli.manifests.documents import Document
from webhook.cli.manifests.judge import judge_of
from webhook.objects.pods import Pod
from webhook.objects.view import Tree, at, view
from webhook.policy.quota.charges import Charge, never_fits, shortfall
from webhook.policy.quota.queue_status import hold_warnings
from webhook.policy.values.tenants import QuotaRow, Tenant
from webhook.report.waiting import running_pods

_PATCH = '{"spec":{"strategy":{"rollingUpdate":{"maxSurge":0,"maxUnavailable":1}}}}'
_DEFAULT_UNAVAILABLE = "25%"


async def stuck_rollout(asked: AskedCluster, document: Document, pods: Iterable[Tree]) -> str:
    """Return that a rollout waits for GPUs of its own pods; "" for none.

    Usage of other workloads may end by itself. That of its own pods does not, because they run until the new ones do.
    """
    row = asked.policy.kinds.by_kind.get(document.group_kind)
    there, new = at(document.tree, "status.replicas"), at(document.tree, "status.updatedReplicas") or 0
    field = (
        next((each.get("field") for each in hold_warnings(document.tree, row) if each.id == "queued-surge"), None)
        if row
        else None
    )
    if field is None or not there or there == new or _replaces_without_surge(document):
        return ""
    tenant = asked.cluster.known.tenant(await asked.cluster.known.namespace(document.namespace))
    decision = await next_decision(asked, document)
    charge = decision.charge if decision else None
    bounding = _bounding(tenant, charge) if tenant and charge else None
    if bounding is None or charge is None:
        return ""
    charged = [each for each in running_pods(pods) if not view(each, Pod).waits_for_quota]
    charges = [each for pod in charged if (each := await charge_of_existing(asked, pod))]
    first = evicted_first(charged)
    if first is None or shortfall((charge,), bounding, _usage(charges, bounding)) is None:
        return ""
    in_its_place = judge_of(asked.cluster, await ledger_without(asked, first), asked.policy)
    if refusal_of(await in_its_place.finding(document), booked=False):
        return ""  # the old pod would end for nothing
    if document.kind != "Deployment":
        return f"A rollout is under way: its new pods wait for the quota that its old pods use. Set {field}: 0."
    return (
        "The rollout is stuck: its old pods use the quota that its new pods need, so waiting does not help. To have it "
        f"replace pods one by one: kubectl patch deployment {document.name} -n {document.namespace} -p '{_PATCH}'"
    )


def _bounding(tenant: Tenant, charge: Charge) -> Tenant | None:
    """Return the tenant with the rows whose GPUs its old pods use; None if their end gives a new pod no room."""
    spent = [row for row in charge.rows(tenant) if row.spent]
    if never_fits(charge, tenant) or any(row.tier is None or tenant.action(row) != "Demote" for row in spent):
        return None  # used up hours stay so when the old pods have ended
    # new pods are demoted to tiers that a budget of one tier does not count
    return replace(tenant.bounding_every_tier() if spent else tenant, spent=())


def _replaces_without_surge(document: Document) -> bool:
    """Tell whether a Deployment ends old pods before the new ones run: its maxUnavailable is rounded down."""
    if document.kind != "Deployment":
        return False
    value = at(document.tree, "spec.strategy.rollingUpdate.maxUnavailable")
    text, replicas = str(_DEFAULT_UNAVAILABLE if value is None else value), at(document.tree, "spec.replicas")
    number = text.removesuffix("%")
    if not number.isdecimal():
        return False
    pods = replicas if isinstance(replicas, int) else 1
    return (pods * int(number) // 100 if text.endswith("%") else int(number)) > 0


def _usage(charges: Iterable[Charge], tenant: Tenant) -> dict[QuotaRow, Decimal]:
    usage: dict[QuotaRow, Decimal] = {}
    for each in charges:
        for row in each.rows(tenant):
            usage[row] = usage.get(row, Decimal(0)) + each.gpus
    return usage
