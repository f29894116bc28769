"""What the rules look at: a cluster at one moment, as values."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from decimal import Decimal

import msgspec

from webhook.cluster.gpu_nodes import GpuNode
from webhook.cluster.listed import DisruptionBudget
from webhook.cluster.pod_listing import PodSummary
from webhook.cluster.webhook_configurations import AdmissionPolicy, WebhookConfiguration
from webhook.config.published import InstalledPolicy
from webhook.objects.refusal import first_of
from webhook.policy.quota.charges import Charge
from webhook.policy.quota.tenant_quotas import TenantQuota
from webhook.policy.values.facts import Namespace
from webhook.policy.values.gpu_supply import NO_SUPPLY, GpuSupply
from webhook.policy.values.tenants import Tenant
from webhook.policy.values.tier_policy import TierPolicy
from webhook.policy.values.tiers import PriorityClass
from webhook.report.cluster_parts import Part
from webhook.report.replica_mark import ReplicaMark


class GangSeen(msgspec.Struct, frozen=True):
    """A workload that is a gang and has not ended, with what it needs. `tenant` is its namespace's.

    `shards`: it is booked whole, but each of its pods works by itself.
    """

    uid: str
    kind: str
    namespace: str
    name: str
    charges: tuple[Charge, ...]
    tenant: Tenant | None = None
    shards: bool = False

    def __str__(self) -> str:
        return f"{self.kind}/{self.name} in {self.namespace}"


class PodGroupSeen(msgspec.Struct, frozen=True):
    """A PodGroup of Kubernetes' own scheduler. `whole`: its disruptionMode says that its pods go together."""

    namespace: str
    name: str
    priority: int
    whole: bool


class CertificateSeen(msgspec.Struct, frozen=True):
    """A certificate by which the API server reaches the webhook, and where it lies. `ca`: one that signs others."""

    where: str
    not_after: datetime
    ca: bool = False


class PreemptionRule(msgspec.Struct, frozen=True):
    """A rule of Kueue's PreemptionConfig (KEP-13396). `modes`: how each of its selectors compares priorities."""

    config: str
    name: str
    modes: tuple[str, ...]


class FailedHook(msgspec.Struct, frozen=True):
    """A FailedPreStopHook event: so many times a pod ended without a save that was confirmed."""

    namespace: str
    pod: str
    times: int


class DryRun(msgspec.Struct, frozen=True):
    """What came of a dry run that asks both webhooks for a mark, after so many seconds. `said`: by the API server."""

    marks: tuple[ReplicaMark, ...]
    seconds: float = 0.0
    said: str = ""


class Running(msgspec.Struct, frozen=True):
    """Whether the webhook runs. `leader` is the replica that renews the Lease, "" for none.

    `unread` says what it takes to tell the rest.
    """

    installed: InstalledPolicy
    dry_run: DryRun
    leader: str
    unread: Mapping[Part, str] = msgspec.field(default_factory=dict)

    @property
    def replica(self) -> ReplicaMark | None:
        return next(iter(self.dry_run.marks), None)


NOBODY_ASKED = Running(InstalledPolicy("", ""), DryRun(()), "")


class Taken(msgspec.Struct, frozen=True):
    """What pods take of a node."""

    gpus: Decimal = Decimal(0)
    cpu: Decimal = Decimal(0)
    memory: Decimal = Decimal(0)


class ClusterSnapshot(msgspec.Struct, frozen=True):
    """A cluster, as far as it was read. `unread` says of each part that was not, what it takes to read it.

    `pods` are those with GPUs; `taken` is what all pods take of the nodes, by node. `version` is major and minor.
    """

    policy: TierPolicy
    now: datetime
    classes: Mapping[str, PriorityClass] = msgspec.field(default_factory=dict)
    tenants: tuple[TenantQuota, ...] = ()
    namespaces: tuple[Namespace, ...] = ()
    nodes: tuple[GpuNode, ...] = ()
    pods: tuple[PodSummary, ...] = ()
    taken: Mapping[str, Taken] = msgspec.field(default_factory=dict)
    gangs: tuple[GangSeen, ...] = ()
    pod_groups: tuple[PodGroupSeen, ...] = ()
    budgets: tuple[DisruptionBudget, ...] = ()
    configurations: tuple[WebhookConfiguration, ...] = ()
    admission_policies: tuple[AdmissionPolicy, ...] = ()
    certificates: tuple[CertificateSeen, ...] = ()
    running: Running = NOBODY_ASKED
    failed_hooks: tuple[FailedHook, ...] = ()
    lost_pods: tuple[PodSummary, ...] = ()
    preemption_rules: tuple[PreemptionRule, ...] = ()
    version: tuple[int, int] = (0, 0)
    supply: GpuSupply = NO_SUPPLY
    unread: Mapping[Part, str] = msgspec.field(default_factory=dict)

    @property
    def pods_by_namespace(self) -> dict[str, list[PodSummary]]:
        found: dict[str, list[PodSummary]] = {}
        for pod in self.pods:
            found.setdefault(pod.namespace, []).append(pod)
        return dict(sorted(found.items()))

    @property
    def in_force(self) -> list[Tenant]:
        """The tenants whose quotas are charged here."""
        return [each.tenant for each in self.tenants if each.tenant and not each.tenant.charged_elsewhere]


MOST_NAMED = 3
"""Names that a sentence lists before it counts the others."""


def some_of(names: Iterable[str]) -> str:
    return first_of(list(dict.fromkeys(names)), MOST_NAMED)


def number_of(number: int, noun: str) -> str:
    """A number with its noun: 1 pod, 2 pods."""
    return f"{number} {noun}{'' if number == 1 else 's'}"
