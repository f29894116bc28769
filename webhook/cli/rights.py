"""The rights that commands take, and the ClusterRole of the chart that gives them to everybody."""

from collections.abc import Collection, Mapping

from webhook.readmodel.lint.snapshot import Part

RIGHTS: Mapping[Part, str] = {
    "classes": "list priorityclasses.scheduling.k8s.io",
    "device_classes": "list deviceclasses.resource.k8s.io",
    "tenants": "list tenantquotas.gpu-tiers.dev",
    "namespaces": "list namespaces",
    "home": "get the namespace",
    "nodes": "list nodes",
    "capacity": "list resourceslices.resource.k8s.io",
    "pods": "list pods in all namespaces",
    "gangs": "list the workloads that are gangs",
    "pod_groups": "list podgroups.scheduling.k8s.io",
    "budgets": "list poddisruptionbudgets.policy",
    "configurations": "list webhook configurations (admissionregistration.k8s.io)",
    "certificates": "get the Secret with the certificate",
    "failed_hooks": "list events in all namespaces",
    "version": "get /version",
}

OF_A_VERDICT: frozenset[Part] = frozenset({"classes", "device_classes", "tenants", "home", "owners", "claims"})
"""What a verdict rests on: without one of them, another verdict may be the right one."""

READER = "gpu-tiers-reader"
_OF_READER: frozenset[Part] = frozenset({"classes", "device_classes", "tenants", "nodes", "capacity"})
ASK_FOR_READER = (
    f"ClusterRole {READER} has what commands take beside `view` in a namespace; a cluster admin binds it: "
    f"kubectl create clusterrolebinding {READER}s --clusterrole={READER} --group=GROUP"
)
ASK_FOR_CLUSTER_READER = "ClusterRole gpu-tiers-cluster-reader, which is for platform teams, has the right"


def untold(lost: str, *rights: str) -> str:
    """That something can't be told, and for want of what."""
    return f"Without the right to {' and to '.join(rights)}, {lost} can't be told."


def how_to_get(unread: Collection[Part]) -> tuple[str, ...]:
    """The role that has rights to what could not be read, and how it is bound."""
    return (ASK_FOR_READER,) if _OF_READER & {*unread} else ()
