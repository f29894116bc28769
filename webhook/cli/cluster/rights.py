"""The rights that commands take, and the ClusterRole of the chart that gives them to everybody."""

import re
from collections.abc import Collection, Mapping

from webhook.kube.errors import Forbidden
from webhook.report.lint.snapshot import Part

_OF_READER: Mapping[Part, str] = {
    "classes": "list priorityclasses.scheduling.k8s.io",
    "device_classes": "list deviceclasses.resource.k8s.io",
    "tenants": "list tenantquotas.gpu-tiers.dev",
    "nodes": "list nodes",
    "capacity": "list resourceslices.resource.k8s.io",
    "slices": "list resourceslices.resource.k8s.io",
    "device_taints": "list devicetaintrules.resource.k8s.io",
    "leader": "get the Lease of gpu-tiers",
    "policy_in_force": "get the ConfigMap with the policy in force",
}
_OF_CLUSTER_READER: Mapping[Part, str] = {
    "namespaces": "list namespaces",
    "pods": "list pods in all namespaces",
    "allocations": "list resourceclaims.resource.k8s.io in all namespaces",
    "gangs": "list the workloads that are gangs",
    "pod_groups": "list podgroups.scheduling.k8s.io",
    "budgets": "list poddisruptionbudgets.policy",
    "configurations": "list webhook configurations (admissionregistration.k8s.io)",
    "admission_policies": "list ValidatingAdmissionPolicies and their bindings (admissionregistration.k8s.io)",
    "failed_hooks": "list events in all namespaces",
    "lost_pods": "list jobs.batch",
    "preemption_configs": "list preemptionconfigs.kueue.x-k8s.io",
}
RIGHTS: Mapping[Part, str] = {
    **_OF_READER,
    **_OF_CLUSTER_READER,
    "home": "get the namespace",
    "certificates": "get the Secret with the certificate",
    "version": "get /version",
}
"""What each part of a cluster takes to be read."""

OF_A_VERDICT: frozenset[Part] = frozenset({"classes", "device_classes", "tenants", "home", "owners", "claims"})
"""The parts that a verdict needs: without one of them, another verdict may be right."""

READER = "gpu-tiers-reader"
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
    """Say that something can't be told, and for want of which rights."""
    return f"Without the right to {' and to '.join(rights)}, {lost} can't be told."


def how_to_get(unread: Collection[Part]) -> tuple[str, ...]:
    """Return the roles that have rights to what could not be read, and how they are bound."""
    asks = ((_OF_READER, ASK_FOR_READER), (_OF_CLUSTER_READER, ASK_FOR_CLUSTER_READER))
    return tuple(ask for has, ask in asks if has.keys() & {*unread})


def role_for(refused: Forbidden) -> str:
    """Return the role that has the right to what the API server refused, and how it is bound."""
    place = _PATH.fullmatch(refused.path)
    group, namespace, plural = (place[each] or "" for each in ("group", "namespace", "plural")) if place else ("",) * 3
    if not namespace or plural in _READERS_AT_HOME:
        return ASK_FOR_READER if plural in _READERS | _READERS_AT_HOME else ASK_FOR_CLUSTER_READER
    role, named = "ClusterRole view has the right", "view"
    if group not in _VIEWED:
        role += " where the operator adds its kinds to it, else a ClusterRole of the operator has it"
        named = "CLUSTERROLE"
    bound = f"kubectl create rolebinding NAME --clusterrole={named} --user=NAME --namespace={namespace}"
    return f"{role}; an admin of namespace {namespace} binds it: {bound}"
