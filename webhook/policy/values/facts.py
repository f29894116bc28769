"""The facts of the cluster about one request, as values. Admission gathers them.

An admission plugin writes a namespace's node selector on each of its pods: PodNodeSelector of Kubernetes, or
OpenShift's, which ignores a namespace with the annotation of the first. Each plugin also has a default for the whole
cluster, which no API shows. It is not visible whether a plugin runs. So the selector only predicts where a workload's
pods will run; a pod under review has it already. Source: admission-controllers/#podnodeselector of the Kubernetes
documentation.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from webhook.objects.pods import Metadata, Pod, PodClaim
from webhook.objects.view import Tree
from webhook.policy.values.gpu_supply import EvictionScope
from webhook.policy.values.tenants import Tenant
from webhook.policy.values.tiers import PriorityClass
from webhook.policy.workloads.pod_groups import PodsTogether, SchedulersGroup
from webhook.policy.workloads.workload import Devices, Workload

ANNOTATIONS = ("scheduler.alpha.kubernetes.io/node-selector", "openshift.io/node-selector")


def selecting(pod: Pod, selector: Mapping[str, str]) -> Pod:
    """Return the pod with these labels in its node selector; its own stay, even if the plugin refuses them."""
    if selector.items() <= pod.spec.node_selector.items():
        return pod
    merged = {**selector, **pod.spec.node_selector}
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, node_selector=merged))


def with_selector(tree: Tree, selector: Mapping[str, str]) -> Tree:
    """Return a pod's JSON as it reaches the webhook, because the plugin adds the namespace's selector before.

    Labels in the pod's own node selector stay.
    """
    spec = tree.get("spec")
    if not selector or not isinstance(spec, dict):
        return tree
    own = spec.get("nodeSelector") or {}
    return {**tree, "spec": {**spec, "nodeSelector": {**selector, **own}}} if isinstance(own, dict) else tree


def namespace_selector(annotations: Mapping[str, str]) -> Mapping[str, str]:
    """Return the selector in a namespace's annotations; empty if there is none or it can't be read.

    A plugin refuses every pod of a namespace whose selector it can't read.
    """
    annotation = next((each for each in ANNOTATIONS if each in annotations), None)
    if annotation is None:
        return {}
    pairs = [each.split("=") for each in annotations[annotation].split(",") if annotations[annotation].strip()]
    if not pairs or any(len(each) != 2 or not each[0].strip() for each in pairs):  # noqa: PLR2004 - key and value
        return {}
    return {key.strip(): value.strip() for key, value in pairs}


NAME_LABEL = "kubernetes.io/metadata.name"
"""The label with a namespace's own name. The API server writes it."""


class Namespace(msgspec.Struct, frozen=True):
    """A namespace, its labels, and the node labels that all of its pods ask for. Only watched namespaces have a uid."""

    name: str
    labels: Mapping[str, str] = msgspec.field(default_factory=dict)
    uid: str = ""
    selector: Mapping[str, str] = msgspec.field(default_factory=dict)


def namespace_of(metadata: Metadata) -> Namespace:
    return Namespace(metadata.name, metadata.labels, metadata.uid, namespace_selector(metadata.annotations))


class Group(msgspec.Struct, frozen=True):
    """The PodGroup that a pod is scheduled with; its class is immutable.

    `prioritized`: the API server stores a priority on it, which 1.36 does only with the gate WorkloadAwarePreemption.
    `demoted_from` is the tier without room for its gang; "" if it runs as it asked. `pods` is a gang's minCount, 0 for
    other groups. `claims` are those that its pods share (DRAWorkloadResourceClaims).
    """

    name: str
    priority_class_name: str
    prioritized: bool = True
    demoted_from: str = ""
    pods: int = 0
    claims: tuple[PodClaim, ...] = ()


class Facts(msgspec.Struct, frozen=True):
    """The facts that a decision may know beyond the object itself. Owners are the nearest first.

    `devices` are those of the pod's resource claims. `unread_claims` are claims of a workload's templates, with the
    reason why they can't be read; its pods are refused for them, the workload is not. `node_labels` are those of the
    node that a pod is bound to. `groups` are those of other schedulers that a pod names, and `together` is the group of
    a pod that no workload makes into a gang. `eviction` is what kube-scheduler evicts pods for in this cluster.
    """

    namespace: Namespace
    classes: Mapping[str, PriorityClass]
    owners: tuple[Workload, ...] = ()
    tenant: Tenant | None = None
    group: Group | None = None
    devices: tuple[Devices, ...] = ()
    unread_claims: tuple[str, ...] = ()
    node_labels: Mapping[str, str] = msgspec.field(default_factory=dict)
    groups: tuple[SchedulersGroup, ...] = ()
    together: PodsTogether | None = None
    eviction: EvictionScope = EvictionScope()
    holders: dict[object, Any] = msgspec.field(default_factory=dict)
    """A cache. By a template's id: whether it asks for GPUs. By an owner's id and the question: what its templates say
    about the tier. Hundreds of templates may ask this of each other."""

    @property
    def selects(self) -> frozenset[str]:
        """Return the keys of the labels by which a pod's controller selects its pods."""
        return self.owners[0].selects if self.owners else frozenset()
