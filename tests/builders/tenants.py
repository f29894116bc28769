"""Tenants and the namespaces that are theirs."""

from typing import Self

from tests.builders.built import Built, Tree
from webhook.policy.quota.tenant_quotas import read_tenant
from webhook.policy.values.tenants import Tenant


class TenantBuilder(Built):
    """A TenantQuota."""

    def allowing(self, gpus: object, *, tier: str | None = None, flavor: str | None = None) -> Self:
        """Return a tenant with one more row of its quotas."""
        row = {"gpus": gpus, "tier": tier, "resourceFlavor": flavor}
        return self.having("spec.quotas", [{key: value for key, value in row.items() if value is not None}])

    def view(self) -> Tenant:
        return read_tenant(self.json())


def tenant_quota(name: str, namespace: str, **spec: object) -> Tree:
    """The TenantQuota of one namespace, as a person applies it."""
    selector = {"matchLabels": {"kubernetes.io/metadata.name": namespace}}
    return {
        "apiVersion": "gpu-tiers.dev/v1alpha1",
        "kind": "TenantQuota",
        "metadata": {"name": name},
        "spec": {"namespaceSelector": selector, **spec},
    }


def a_tenant(name: str = "alpha", *, namespace: str = "team-alpha", **spec: object) -> TenantBuilder:
    """The tenant of one namespace."""
    made = TenantBuilder(tenant_quota(name, namespace, **{"quotas": [], **spec}))
    return made.having("metadata.creationTimestamp", "2026-11-01T08:00:00Z")


def a_namespace(name: str = "team-alpha") -> Built:
    """A namespace."""
    return Built({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
