"""The accounts of a tenant without the existing pods that its next pods replace."""

from collections.abc import Collection, Iterable
from decimal import Decimal
from typing import NamedTuple

from msgspec.structs import replace

from webhook.admission.facts import charged_facts
from webhook.cli.cluster.one_object import AskedCluster
from webhook.cluster.listed import gpu_nodes
from webhook.ledger.account import Account, Entry, GangKey
from webhook.ledger.memory import MemoryLedger
from webhook.ledger.protocol import Ledger
from webhook.objects.pods import Pod
from webhook.objects.refusal import Refused
from webhook.objects.view import Tree, view
from webhook.policy.quota.charges import Charge, charge_of
from webhook.policy.quota.demand import asked_of
from webhook.policy.quota.native_quotas import NativeQuota
from webhook.policy.values.tenants import Tenant, is_maybe
from webhook.policy.values.tier_policy import TierPolicy
from webhook.report.waiting import running_pods


class Existing(NamedTuple):
    """The existing pods of a workload; None if the object is a pod, or if the user may not list pods.

    `gang` are its entries in its tenant's account if it is booked whole. `own` are the uids under which the queue
    reserves GPUs for it.
    """

    pods: list[Tree] | None
    account: Account
    gang: tuple[Entry, ...]
    own: Collection[str]


def evicted_first(pods: Iterable[Tree]) -> Tree | None:
    """Return the pod with the lowest priority among those that have not ended; None if all have."""
    return min(running_pods(pods), key=lambda each: view(each, Pod).spec.priority or 0, default=None)


async def ledger_without(asked: AskedCluster, pods: Iterable[Tree]) -> Ledger:
    """Return a ledger with only the account of the tenant of these pods, without their usage.

    The pods are of one namespace. A pod that uses nothing, or whose usage can't be read, changes nothing. If none
    changes anything, return the ledger of `asked`.
    """
    there: tuple[Tenant, Account] | None = None
    for pod in running_pods(pods):
        found = view(pod, Pod)
        try:
            home, devices = await charged_facts(found, found.metadata.namespace, asked.cluster)
        except Refused:  # its own verdict says so
            continue
        tenant, charge = asked.cluster.known.tenant(home), charge_of(found, devices, asked.policy)
        version = asked.quotas.get(tenant.name) if tenant else None
        if tenant is None or charge is None or version is None or not version.sealed or found.waits_for_quota:
            continue
        account = there[1] if there else version.account
        there = tenant, account_without(account, found.metadata.uid, await _on_its_node(asked, found, charge))
    return _of(*there) if there else asked.ledger


def native_without(quotas: Iterable[NativeQuota], pods: Iterable[Tree], policy: TierPolicy) -> tuple[NativeQuota, ...]:
    """Return the ResourceQuotas as they are once these pods have gone; they count queued pods too."""
    found = [
        (each.spec.priority_class_name, asked_of(each, policy)) for each in (view(p, Pod) for p in running_pods(pods))
    ]

    def freed(quota: NativeQuota, name: str) -> Decimal:
        return sum((asked.get(name, Decimal(0)) for of, asked in found if quota.counts(of)), Decimal(0))

    return tuple(
        replace(each, free={name: free + freed(each, name) for name, free in each.free.items()}) for each in quotas
    )


def ledger_without_gang(tenant: Tenant, account: Account, gang: GangKey) -> Ledger:
    """Return the accounts of a tenant without a gang that is booked whole, and without its pods."""
    return _of(tenant, replace(account, entries=tuple(each for each in account.entries if each.gang != gang)))


def _of(tenant: Tenant, account: Account) -> Ledger:
    ledger = MemoryLedger()
    ledger.store.set(tenant, account)
    return ledger


async def charge_of_existing(asked: AskedCluster, pod: Tree) -> Charge | None:
    """Return what an existing pod is charged; None if it uses no GPU, or its claims can't be read."""
    found = view(pod, Pod)
    try:
        _, devices = await charged_facts(found, found.metadata.namespace, asked.cluster)
    except Refused:  # its own verdict says so
        return None
    charge = charge_of(found, devices, asked.policy)
    return await _on_its_node(asked, found, charge) if charge else None


async def _on_its_node(asked: AskedCluster, pod: Pod, charge: Charge) -> Charge:
    """Return a pod's charge on the flavor of its node, because without a node it counts on each possible flavor."""
    if not (asked.policy.flavors and pod.spec.node_name):
        return charge
    lost = "on which flavor its pods run"
    nodes = await asked.reader.part("nodes", gpu_nodes(asked.reader.client, asked.policy), (), lost)
    node = next((each for each in nodes if each.name == pod.spec.node_name), None)
    named = None if is_maybe(charge.flavor) else charge.flavor
    return replace(charge, flavor=node.flavor or named) if node else charge


def account_without(account: Account, uid: str, charge: Charge) -> Account:
    """Return the account without a pod, which has its own entry or is in the sum of its tier's pods.

    The sum loses only the pod's own GPUs, because others may use those that it shares.
    """
    others = tuple(each for each in account.entries if each.uid != uid)
    if len(others) < len(account.entries):
        return replace(account, entries=others)
    sums = [each for each in account.entries if not each.uid and not each.of]
    of_its_tier = [each for entry in sums for each in entry.wants if each.tier == charge.tier and each.own]
    its = max(of_its_tier, key=lambda each: (each.flavor == charge.flavor, each.gpus), default=None)

    def left(entry: Entry) -> Entry:
        wants = (
            replace(each, gpus=max(each.gpus - charge.own, Decimal(0))) if each is its else each for each in entry.wants
        )
        return replace(entry, wants=tuple(wants))

    return replace(account, entries=tuple(left(each) for each in account.entries))
