"""A cluster with nothing in it, and what a rule says of one that has more."""

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from tests.builders import a_policy, live_classes
from webhook.cluster.listed import GpuNode, PodSummary
from webhook.config.published import InstalledPolicy, Published, digest_of
from webhook.objects.pods import OwnerReference
from webhook.policy.quota.tenant_quotas import TenantQuota
from webhook.policy.values.tenants import Tenant
from webhook.policy.values.tier_policy import TierPolicy
from webhook.report.latest import ReplicaMark
from webhook.report.lint import RULES
from webhook.report.lint.rule import lint_report
from webhook.report.lint.snapshot import ClusterSnapshot, DryRun

NOW = datetime(2026, 11, 22, tzinfo=UTC)
GIB = 1024**3


FILE = "preset: four-tier"
PUBLISHED = Published(FILE, digest_of(FILE), "2026-11-21T09:00:00Z")


def marks(**fields: Any) -> tuple[ReplicaMark, ...]:
    """Return the marks of a healthy replica, with these fields changed."""
    well = {"replica": "gpu-tiers-7f", "policy": digest_of(FILE), "taken": True, "watches": 20, "certificate": 0}
    return tuple(ReplicaMark(webhook=each, **(well | fields)) for each in ("mutate", "validate"))  # type: ignore[arg-type]


def running(**parts: Any) -> dict[str, Any]:
    """A webhook that is well, but for these parts."""
    well = {
        "installed": InstalledPolicy("gpu-tiers/gpu-tiers", FILE, PUBLISHED),
        "dry_run": DryRun(marks(), 0.1),
        "leader": "gpu-tiers-7f",
    }
    return well | parts


def a_cluster(policy: TierPolicy | None = None, **parts: Any) -> ClusterSnapshot:
    """A cluster of that policy with these parts."""
    policy = policy or a_policy()
    classes = {name: live for name, live in live_classes(policy).items() if name != "house"}
    return ClusterSnapshot(policy, NOW, **{"classes": classes, **running(), **parts})


def found(rule: str, cluster: ClusterSnapshot) -> list[str]:
    """Return the findings of that rule, line by line."""
    return [f"{each.where}: {each.what}" for each in lint_report(cluster, RULES).findings if each.id == rule]


def a_listed_pod(name: str = "train-0", gpus: int = 1, *, job: str = "", **fields: Any) -> PodSummary:
    """A pod with GPUs, as a list reduces it."""
    owner = OwnerReference(kind="Job", name=job, uid=f"uid-of-{job}", controller=True) if job else None
    there = {
        "namespace": "team-alpha",
        "tier": "gpu-training",
        "class_name": "gpu-training",
        "priority": 1000,
        "node": "n1",
    }
    return PodSummary(name=name, gpus=Decimal(gpus), owner=owner, **(there | fields))


def a_gpu_node(name: str = "n1", gpus: int = 8, **fields: Any) -> GpuNode:
    """A node of 96 cores and 768 GiB."""
    return GpuNode(name, Decimal(gpus), Decimal(96), Decimal(768 * GIB), **fields)


def active(*tenants: Tenant, **status: Any) -> tuple[TenantQuota, ...]:
    """TenantQuotas as they are listed."""
    return tuple(TenantQuota(each.name, 1, each, status=status) for each in tenants)
