"""A cluster or manifests at one moment, as the values that all rules look at."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from decimal import Decimal
from typing import Literal

import msgspec

from webhook.cluster.listed import DisruptionBudget, GpuNode
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
from webhook.report.lint.audited import Audited
from webhook.report.replica_mark import ReplicaMark

Part = Literal[
    "classes",
    "device_classes",
    "tenants",
    "accounts",
    "namespaces",
    "nodes",
    "capacity",
    "slices",
    "allocations",
    "device_taints",
    "pods",
    "gangs",
    "pod_groups",
    "budgets",
    "configurations",
    "admission_policies",
    "certificates",
    "policy_in_force",
    "answer",
    "replica",
    "leader",
    "failed_hooks",
    "lost_pods",
    "preemption_configs",
    "version",
    "home",
    "owners",
    "claims",
    "workloads",
]
"""A part of a cluster that an answer needs, and that a user may or may not read.

`accounts`: the status that the leader writes on TenantQuotas, which files lack. `capacity`: the GPUs of nodes are all
that exist, because no claim allocates others. `answer`: the answer to a dry run. `replica`: what the replica that
answered says of itself.
"""


class GangSeen(msgspec.Struct, frozen=True):
    """A gang that has not ended, with the GPUs that it needs. `tenant` is its namespace's.

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
    """A certificate by which the API server reaches the webhook, and where it is stored. `ca`: it signs others."""

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
    """The marks on a dry run that asked both webhooks, and how long it took. `said`: the API server's words."""

    marks: tuple[ReplicaMark, ...]
    seconds: float = 0.0
    said: str = ""


class Taken(msgspec.Struct, frozen=True):
    """The resources of a node that pods take."""

    gpus: Decimal = Decimal(0)
    cpu: Decimal = Decimal(0)
    memory: Decimal = Decimal(0)


class ClusterSnapshot(msgspec.Struct, frozen=True):
    """A cluster or manifests, as far as they were read. `unread` says what reading each other part needs.

    `pods` are those with GPUs; `taken` is what all pods take of the nodes, by node. `version` is major and minor.
    `leader` is the replica that renews the Lease, "" for none. `workloads` are those that an audit judged.
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
    installed: InstalledPolicy = InstalledPolicy("", "")
    dry_run: DryRun = DryRun(())
    leader: str = ""
    failed_hooks: tuple[FailedHook, ...] = ()
    lost_pods: tuple[PodSummary, ...] = ()
    preemption_rules: tuple[PreemptionRule, ...] = ()
    version: tuple[int, int] = (0, 0)
    supply: GpuSupply = NO_SUPPLY
    workloads: tuple[Audited, ...] = ()
    unread: Mapping[Part, str] = msgspec.field(default_factory=dict)

    @property
    def replica(self) -> ReplicaMark | None:
        """The replica that answered the dry run."""
        return next(iter(self.dry_run.marks), None)

    @property
    def pods_by_namespace(self) -> dict[str, list[PodSummary]]:
        found: dict[str, list[PodSummary]] = {}
        for pod in self.pods:
            found.setdefault(pod.namespace, []).append(pod)
        return dict(sorted(found.items()))

    @property
    def in_force(self) -> list[Tenant]:
        """Return the tenants whose quotas are charged here."""
        return [each.tenant for each in self.tenants if each.tenant and not each.tenant.charged_elsewhere]


MOST_NAMED = 3
"""Names that a sentence lists before it counts the others."""


def some_of(names: Iterable[str]) -> str:
    return first_of(list(dict.fromkeys(names)), MOST_NAMED)


def number_of(number: int, noun: str) -> str:
    """Write a number with its noun: 1 pod, 2 pods."""
    return f"{number} {noun}{'' if number == 1 else 's'}"
