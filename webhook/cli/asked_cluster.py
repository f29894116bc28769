"""A cluster as a person may read it: its facts and its ledger, and in words what that person may not read."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from webhook.admission.review import Request
from webhook.admission.verdict import Verdict
from webhook.admission.webhook import Webhooks
from webhook.cli.desk import Desk
from webhook.cli.documents import BadInput
from webhook.cli.installed import NAME_IT, policy_of, priority_classes
from webhook.cli.progress import Steps
from webhook.cluster.lookups import Lookups
from webhook.cluster.offline import SYSTEM
from webhook.cluster.read_once import ReadOnce
from webhook.config.errors import ConfigError
from webhook.kube.client import Client
from webhook.kube.errors import Forbidden, NotFound
from webhook.kube.paths import path
from webhook.ledger.kubernetes import KubernetesLedger
from webhook.ledger.stored_quotas import StoredQuotas
from webhook.ledger.versions import Version, Versions
from webhook.objects.pods import Named
from webhook.objects.view import view
from webhook.policy.values.facts import NAME_LABEL, Namespace
from webhook.policy.values.tenants import by_age
from webhook.policy.values.tier_policy import Mode, TierPolicy
from webhook.policy.values.tiers import PriorityClass, classes_of


@dataclass(frozen=True)
class AskedCluster:
    """What a command asks. `unread` are sentences on what could not be read, each with what follows from that.

    `steps` say how far it is.
    """

    client: Client
    policy: TierPolicy
    cluster: ReadOnce
    ledger: KubernetesLedger
    quotas: Mapping[str, Version]
    unread: list[str]
    steps: Steps

    @property
    def desk(self) -> Desk:
        """A desk that judges as the webhook in Enforce would judge a create now. Nothing is booked."""
        webhooks = Webhooks(self.cluster, self.ledger, lambda: self.policy, lambda *_: None)

        async def judge(webhook: str, request: Request) -> Verdict:
            return await webhooks.judge(webhook, request, Mode.Enforce, self.policy)

        return Desk(judge, self.cluster.completed, self.policy)


async def policy_in_force(client: Client, named: str | Path | None, *, instead: str = NAME_IT) -> TierPolicy:
    """The policy of a file or a preset, else of the installation. Raises ConfigError, ApiError."""
    try:
        return await policy_of(client, named, instead=instead)
    except Forbidden as error:
        raise ConfigError("the cluster", [f"{error}; {instead}"]) from None


@asynccontextmanager
async def asked_cluster(client: Client, policy: TierPolicy, namespace: str) -> AsyncIterator[AskedCluster]:
    """The facts about objects of a namespace. Raises ApiError, and BadInput where there is no such namespace."""
    unread: list[str] = []
    lookups, stored = Lookups(client), StoredQuotas(client, Versions())
    ledger = KubernetesLedger(stored)
    try:
        quotas = await _quotas(stored, unread)
        home = await _namespace(client, namespace, unread)
        tenants = by_age(each.tenant for each in quotas if each.tenant)
        classes = await _classes(client, policy, unread)
        facts = ReadOnce(lookups, classes, unread.append, tenants, {namespace: home})
        with Steps() as steps:
            yield AskedCluster(client, policy, facts, ledger, {each.name: each for each in quotas}, unread, steps)
    finally:
        await ledger.close()
        await lookups.close()


async def _quotas(stored: StoredQuotas, unread: list[str]) -> list[Version]:
    try:
        return await stored.every()
    except NotFound:
        return []
    except Forbidden:
        unread.append("You may not list tenantquotas.gpu-tiers.dev: tenant, ceiling and quota are left out.")
        return []


async def _namespace(client: Client, name: str, unread: list[str]) -> Namespace:
    try:
        return Namespace(name, view(await client.get(path("v1", "namespaces", name=name)), Named).metadata.labels)
    except NotFound:
        raise BadInput(f"there is no namespace {name}") from None
    except Forbidden:
        unread.append(f"You may not get namespace {name}: its labels are not known, and so perhaps not its tenant.")
        return Namespace(name, {NAME_LABEL: name})


async def _classes(client: Client, policy: TierPolicy, unread: list[str]) -> Mapping[str, PriorityClass]:
    try:
        return await priority_classes(client)
    except Forbidden:
        unread.append("You may not list priorityclasses.scheduling.k8s.io: they are taken as the policy has them.")
        return {each.name: each for each in (*SYSTEM, *(live for tier in policy.tiers for live in classes_of(tier)))}
