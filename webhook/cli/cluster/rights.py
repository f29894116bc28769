"""The rights that commands take, and the ClusterRole of the chart that gives them to everybody."""

import re
from collections.abc import Collection, Mapping

from webhook.kube.errors import Forbidden
from webhook.report.cluster_parts import Part

RIGHTS: Mapping[Part, str] = {
    "classes": "list priorityclasses.scheduling.k8s.io",
    "device_classes": "list deviceclasses.resource.k8s.io",
    "tenants": "list tenantquotas.gpu-tiers.dev",
    "namespaces": "list namespaces",
    "home": "get the namespace",
    "nodes": "list nodes",
    "capacity": "list resourceslices.resource.k8s.io",
    "slices": "list resourceslices.resource.k8s.io",
    "allocations": "list resourceclaims.resource.k8s.io in all namespaces",
    "device_taints": "list devicetaintrules.resource.k8s.io",
    "pods": "list pods in all namespaces",
    "gangs": "list the workloads that are gangs",
    "pod_groups": "list podgroups.scheduling.k8s.io",
    "budgets": "list poddisruptionbudgets.policy",
    "configurations": "list webhook configurations (admissionregistration.k8s.io)",
    "admission_policies": "list ValidatingAdmissionPolicies and their bindings (admissionregistration.k8s.io)",
    "certificates": "get the Secret with the certificate",
    "leader": "get the Lease of gpu-tiers",
    "failed_hooks": "list events in all namespaces",
    "lost_pods": "list jobs.batch",
    "preemption_configs": "list preemptionconfigs.kueue.x-k8s.io",
    "version": "get /version",
}

OF_A_VERDICT: frozenset[Part] = frozenset({"classes", "device_classes", "tenants", "home", "owners", "claims"})
"""What a verdict rests on: without one of them, another verdict may be the right one."""

READER = "gpu-tiers-reader"
_OF_READER: frozenset[Part] = frozenset(
    {
        "classes",
        "device_classes",
        "tenants",
        "nodes",
        "capacity",
        "slices",
        "device_taints",
        "leader",
        "policy_in_force",
    }
)
_OF_CLUSTER_READER: frozenset[Part] = frozenset(
    {
        "namespaces",
        "pods",
        "allocations",
        "gangs",
        "pod_groups",
        "budgets",
        "configurations",
        "admission_policies",
        "failed_hooks",
        "lost_pods",
        "preemption_configs",
    }
)
ASK_FOR_READER = (
    f"ClusterRole {READER} has what commands take beside `view` in a namespace; a cluster admin binds it: "
    f"kubectl create clusterrolebinding {READER}s --clusterrole={READER} --group=GROUP"
)
CLUSTER_READER = "gpu-tiers-cluster-reader"
ASK_FOR_CLUSTER_READER = (
    f"ClusterRole {CLUSTER_READER}, which is for platform teams, has what commands take of all namespaces; "
    f"a cluster admin binds it: kubectl create clusterrolebinding {CLUSTER_READER}s --clusterrole={CLUSTER_READER} "
    "--group=GROUP"
)

_PATH = re.compile(
    r"/(?:api|apis/(?P<group>[^/]+))/[^/]+(?:/namespaces/(?P<namespace>[^/]+))?(?:/(?P<plural>[^/]+).*)?"
)
_READERS = {"tenantquotas", "priorityclasses", "nodes", "deviceclasses", "resourceslices", "devicetaintrules"}
_READERS_AT_HOME = {"configmaps", "leases"}
"""What the reader has in the whole cluster, and, of gpu-tiers alone, in its namespace."""
_VIEWED = ("", "apps", "batch", "policy")
"""API groups of which Kubernetes' own `view` has what commands take; other groups' operators add to it."""


def untold(lost: str, *rights: str) -> str:
    """That something can't be told, and for want of what."""
    return f"Without the right to {' and to '.join(rights)}, {lost} can't be told."


def how_to_get(unread: Collection[Part]) -> tuple[str, ...]:
    """The roles that have rights to what could not be read, and how they are bound."""
    asks = ((_OF_READER, ASK_FOR_READER), (_OF_CLUSTER_READER, ASK_FOR_CLUSTER_READER))
    return tuple(ask for has, ask in asks if has & {*unread})


def role_for(refused: Forbidden) -> str:
    """The role that has the right to what the API server refused, and how it is bound."""
    place = _PATH.fullmatch(refused.path)
    group, namespace, plural = (place[each] or "" for each in ("group", "namespace", "plural")) if place else ("",) * 3
    if namespace and plural not in _READERS_AT_HOME:
        return _ask_for_view(namespace, group)
    return ASK_FOR_READER if plural in _READERS | _READERS_AT_HOME else ASK_FOR_CLUSTER_READER


def _ask_for_view(namespace: str, group: str) -> str:
    role, named = "ClusterRole view has the right", "view"
    if group not in _VIEWED:
        role += " where the operator adds its kinds to it, else a ClusterRole of the operator has it"
        named = "CLUSTERROLE"
    bound = f"kubectl create rolebinding NAME --clusterrole={named} --user=NAME --namespace={namespace}"
    return f"{role}; an admin of namespace {namespace} binds it: {bound}"
