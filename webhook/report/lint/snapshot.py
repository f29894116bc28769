"""A cluster or manifests at one moment, as the input of all rules, with the workloads of an audit."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import Literal

import msgspec

from webhook.cluster.listed import GpuNode, PodSummary
from webhook.cluster.webhook_configurations import AdmissionPolicy, WebhookConfiguration
from webhook.config.published import InstalledPolicy
from webhook.objects.podgroups import PodGroup
from webhook.objects.refusal import first_of
from webhook.policy.preemption.cluster_state import DisruptionBudget
from webhook.policy.quota.charges import Charge
from webhook.policy.quota.tenant_quotas import TenantQuota
from webhook.policy.values.facts import Namespace
from webhook.policy.values.gpu_supply import NO_SUPPLY, GpuSupply
from webhook.policy.values.tenants import Tenant
from webhook.policy.values.tier_policy import TierPolicy
from webhook.policy.values.tiers import PriorityClass
from webhook.report.latest import ReplicaMark
from webhook.report.object_verdict import ObjectVerdict, VerdictName


class AuditStanding(StrEnum):
    """The state of a workload under the policy: the first that applies."""

    REFUSED = "refused"
    BEFORE = "before"
    OUTSIDE = "outside"
    QUEUED = "queued"
    CHANGED = "changed"
    AGREES = "agrees"


class PodsAlike(msgspec.Struct, frozen=True):
    """Like pods of a workload: existing ones, or those that its template would make.

    `gpus` are their GPUs together. `tier` is the tier in whose rows they count, by their class. `marked`: gpu-tiers has
    seen them at admission. `wait`: they are gated for quota, so they use nothing. `hook`: each of their containers with
    GPUs has a preStop.
    """

    count: int
    gpus: Decimal
    class_name: str = ""
    priority: int = 0
    tier: str | None = None
    flavor: str | None = None
    exist: bool = True
    marked: bool = True
    demoted: bool = False
    wait: bool = False
    hook: bool = False
    grace: int = 30


class Audited(ObjectVerdict, frozen=True, kw_only=True):
    """The verdict on a workload that has GPU pods or asks for a tier, with its pods.

    `classes` are the PriorityClasses that its pods would get, with their values. `findings` are the ids of the rules
    that found something.
    """

    tenant: Tenant | None = None
    classes: Mapping[str, int] = msgspec.field(default_factory=dict)
    pods: tuple[PodsAlike, ...] = ()
    findings: tuple[str, ...] = ()

    def __str__(self) -> str:
        place = f" ({self.source})" if self.source else ""
        return f"{self.kind}/{self.name} in {self.namespace}{place}"

    @property
    def existing(self) -> list[PodsAlike]:
        return [each for each in self.pods if each.exist]

    @property
    def gpus(self) -> Decimal:
        return sum((each.gpus for each in self.pods), Decimal(0))

    @property
    def due(self) -> str:
        """Return the first tier that new pods would get; "" for none."""
        return self.tiers[0].name if self.tiers else ""

    @property
    def counted_as(self) -> str:
        """Return the tier that new pods would get, else the one that existing pods count in; "" for none."""
        return self.due or next((each.tier for each in self.pods if each.tier), "")

    @property
    def by_tier(self) -> Mapping[str, tuple[PodsAlike, ...]]:
        """Return its pods by tier: a demoted pod counts in its own tier, any other in the tier of a new pod."""
        tiers = [each.tier if each.demoted and each.tier else self.counted_as for each in self.pods]
        there = {
            name: tuple(each for each, tier in zip(self.pods, tiers, strict=True) if tier == name) for name in tiers
        }
        return there or {self.counted_as: ()}


def with_another_class(found: Audited) -> list[PodsAlike]:
    """Return the existing pods whose class or priority new pods would not get, except demoted and unmarked ones."""
    due = found.classes
    expected = (each for each in found.existing if due and each.marked and not each.demoted)
    return [each for each in expected if due.get(each.class_name) != each.priority]


def without_hook(found: Audited) -> list[PodsAlike]:
    hook = next(iter(found.hooks), None)
    if hook is None:
        return []
    if hook.kind == "sigterm":  # its hook is the grace period alone
        return [each for each in found.existing if each.grace < hook.grace_period_seconds]
    return [each for each in found.existing if not each.hook]


def standing_of(found: Audited) -> AuditStanding:
    """Return the state of a workload.

    A workload without existing pods agrees only if it names its tier and its verdict is Allowed.
    """
    if found.message:
        return AuditStanding.REFUSED
    if any(not each.marked for each in found.existing):
        return AuditStanding.BEFORE
    if not found.due:  # it keeps a PriorityClass that is no tier's
        return AuditStanding.OUTSIDE
    if found.verdict is VerdictName.QUEUED and all(each.wait for each in found.existing):
        return AuditStanding.QUEUED
    if found.existing:
        differs = with_another_class(found) or without_hook(found)
        return AuditStanding.CHANGED if differs else AuditStanding.AGREES
    named = found.assignment is not None and bool(found.assignment.asked)
    return AuditStanding.AGREES if named and found.verdict is VerdictName.ALLOWED else AuditStanding.CHANGED


_OfDecisions = Literal["classes", "device_classes", "tenants", "accounts", "namespaces"]
_OfNodes = Literal["nodes", "capacity", "slices", "allocations", "device_taints"]
_OfPods = Literal["pods", "gangs", "pod_groups", "budgets", "evictions"]
_OfInstallation = Literal["configurations", "admission_policies", "certificates", "read_active_policy"]
_OfReplicas = Literal["answer", "replica", "leader"]
_OfOthers = Literal["failed_hooks", "lost_pods", "preemption_configs", "autoscalers", "version"]
_OfObject = Literal["home", "owners", "claims", "workloads"]
Part = Literal[_OfDecisions, _OfNodes, _OfPods, _OfInstallation, _OfReplicas, _OfOthers, _OfObject]
"""A part of a cluster that an answer needs, and that a user may or may not read.

`accounts`: the status that the leader writes on TenantQuotas, which files lack. `capacity`: the GPUs of nodes are all
that exist, because no claim allocates others. `answer`: the answer to a dry run. `replica`: the status of the replica
that answered.
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


class CertificateSeen(msgspec.Struct, frozen=True):
    """A certificate by which the API server reaches the webhook, and where it is stored. `ca`: it signs others."""

    where: str
    not_after: datetime
    ca: bool = False


class PreemptionRule(msgspec.Struct, frozen=True):
    """A rule of Kueue's PreemptionConfig (KEP-13396). `modes`: the priority.mode of each selector, "" for none."""

    config: str
    name: str
    modes: tuple[str, ...]


class DryRun(msgspec.Struct, frozen=True):
    """The marks on a dry run that asked both webhooks, and how long it took. `said`: the API server's error, or ""."""

    marks: tuple[ReplicaMark, ...]
    seconds: float = 0.0
    said: str = ""


class Taken(msgspec.Struct, frozen=True):
    """The resources of a node that pods take: GPUs, CPU cores, and bytes of memory."""

    gpus: Decimal = Decimal(0)
    cpu: Decimal = Decimal(0)
    memory: Decimal = Decimal(0)


class ClusterSnapshot(msgspec.Struct, frozen=True):
    """A cluster or manifests, as far as they were read. `unread` says what each part needs that was not read.

    `refused` are the parts that the user has no right to read.

    `pods` are those with GPUs; `taken` are the resources of nodes that all pods take. `version` is major and minor.
    `has_crd`: the API server knows TenantQuotas, or files were read.
    `leader` is the replica that renews the Lease, "" for none. `workloads` are those that an audit judged.
    `failed_hooks`: how often a kubelet reported FailedPreStopHook of a pod, by its namespace and name.
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
    pod_groups: tuple[PodGroup, ...] = ()
    budgets: tuple[DisruptionBudget, ...] = ()
    configurations: tuple[WebhookConfiguration, ...] = ()
    admission_policies: tuple[AdmissionPolicy, ...] = ()
    certificates: tuple[CertificateSeen, ...] = ()
    installed: InstalledPolicy = InstalledPolicy("", "")
    dry_run: DryRun = DryRun(())
    leader: str = ""
    failed_hooks: Mapping[tuple[str, str], int] = msgspec.field(default_factory=dict)
    lost_pods: tuple[PodSummary, ...] = ()
    preemption_rules: tuple[PreemptionRule, ...] = ()
    autoscalers: tuple[str, ...] = ()
    version: tuple[int, int] = (0, 0)
    has_crd: bool = True
    supply: GpuSupply = NO_SUPPLY
    workloads: tuple[Audited, ...] = ()
    unread: Mapping[Part, str] = msgspec.field(default_factory=dict)
    refused: frozenset[Part] = frozenset()

    @property
    def replica(self) -> ReplicaMark | None:
        """Return the first mark on the dry run, of a replica that answered; None if none did."""
        return next(iter(self.dry_run.marks), None)

    @property
    def pods_by_namespace(self) -> dict[str, list[PodSummary]]:
        found: dict[str, list[PodSummary]] = {}
        for pod in self.pods:
            found.setdefault(pod.namespace, []).append(pod)
        return dict(sorted(found.items()))

    @property
    def active(self) -> list[Tenant]:
        """Return the tenants whose quotas are charged here."""
        return [each.tenant for each in self.tenants if each.tenant and not each.tenant.charged_elsewhere]


MOST_NAMED = 3
"""Names that a sentence lists before it counts the others."""


def some_of(names: Iterable[str]) -> str:
    return first_of(list(dict.fromkeys(names)), MOST_NAMED)


def number_of(number: int, noun: str) -> str:
    """Write a number with its noun: 1 pod, 2 pods."""
    return f"{number} {noun}{'' if number == 1 else 's'}"
