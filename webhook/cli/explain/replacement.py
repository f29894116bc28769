"""Judges the pod that comes in the place of another: its tenant holds what it holds now, but for that one."""

from collections.abc import Iterable, Iterator
from decimal import Decimal

from msgspec.structs import replace

from webhook.admission.facts import charged_facts
from webhook.cli.cluster.one_object import AskedCluster
from webhook.cli.manifests.desk import Desk, desk_of
from webhook.cluster.gpu_nodes import gpu_nodes
from webhook.ledger.account import Account
from webhook.ledger.memory import MemoryLedger
from webhook.objects.pods import Pod
from webhook.objects.refusal import Refused
from webhook.objects.view import Tree, view
from webhook.policy.quota.charges import Charge, charge_of
from webhook.policy.values.tenants import is_maybe


def running_pods(pods: Iterable[Tree]) -> Iterator[Tree]:
    """Those that have not ended: they hold their GPUs."""
    return (each for each in pods if (each.get("status") or {}).get("phase") not in ("Succeeded", "Failed"))


def evicted_first(pods: Iterable[Tree]) -> Tree | None:
    """The one whose place is free first, as it ranks lowest; None where none runs."""
    return min(running_pods(pods), key=lambda each: view(each, Pod).spec.priority or 0, default=None)


async def desk_without(asked: AskedCluster, pod: Tree) -> Desk:
    """The desk at which all is as it is now, but that this pod, which counts by itself, holds nothing."""
    found = view(pod, Pod)
    try:
        home, devices = await charged_facts(found, found.metadata.namespace, asked.cluster)
    except Refused:  # its own verdict says so
        return asked.desk
    tenant, charge = asked.cluster.known.tenant(home), charge_of(found, devices, asked.policy)
    version = asked.quotas.get(tenant.name) if tenant else None
    if tenant is None or charge is None or version is None or not version.sealed or not any(running_pods([pod])):
        return asked.desk
    ledger = MemoryLedger()
    held = account_without(version.account, found.metadata.uid, await _on_its_node(asked, found, charge))
    ledger.store.set(tenant, held)
    return desk_of(asked.cluster, ledger, asked.policy)


async def _on_its_node(asked: AskedCluster, pod: Pod, charge: Charge) -> Charge:
    """On the flavor of its node: one that may land on several counts on those until it has a node."""
    if not (asked.policy.flavors and pod.spec.node_name):
        return charge
    lost = "on which flavor its pods run"
    nodes = await asked.reader.part("nodes", gpu_nodes(asked.reader.client, asked.policy), (), lost)
    node = next((each for each in nodes if each.name == pod.spec.node_name), None)
    named = None if is_maybe(charge.flavor) else charge.flavor
    return replace(charge, flavor=node.flavor or named) if node else charge


def account_without(account: Account, uid: str, charge: Charge) -> Account:
    """It is listed by itself, or among what its tier's pods hold in sum. What it shares stays with the others."""
    pods, reservations = (
        tuple(each for each in listed if each.uid != uid) for listed in (account.pods, account.reservations)
    )
    if len(pods) + len(reservations) < len(account.pods) + len(account.reservations):
        return replace(account, pods=pods, reservations=reservations)
    of_its_tier = (each for each in account.held if each.tier == charge.tier)
    its = max(of_its_tier, key=lambda each: (each.flavor == charge.flavor, each.gpus), default=None)
    return replace(account, held=tuple(_less(each, charge.own) if each is its else each for each in account.held))


def _less(held: Charge, gpus: Decimal) -> Charge:
    return replace(held, gpus=max(held.gpus - gpus, Decimal(0)))
