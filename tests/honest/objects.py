"""The kinds of objects in a history, and what their trees say."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

Tree = dict[str, Any]
Key = tuple[str, str]
"""Namespace and name."""

PODS = "/api/v1/pods"
EVENTS = "/api/v1/events"
NODES = "/api/v1/nodes"
CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
JOBS = "/apis/batch/v1/jobs"
CRONJOBS = "/apis/batch/v1/cronjobs"
DEPLOYMENTS = "/apis/apps/v1/deployments"
REPLICASETS = "/apis/apps/v1/replicasets"
STATEFULSETS = "/apis/apps/v1/statefulsets"
DAEMONSETS = "/apis/apps/v1/daemonsets"
JOBSETS = "/apis/jobset.x-k8s.io/v1alpha2/jobsets"
PYTORCHJOBS = "/apis/kubeflow.org/v1/pytorchjobs"
LEADERWORKERSETS = "/apis/leaderworkerset.x-k8s.io/v1/leaderworkersets"
PODGROUPS = "/apis/scheduling.k8s.io/v1beta1/podgroups"
CLAIMS = "/apis/resource.k8s.io/v1/resourceclaims"
CLAIM_TEMPLATES = "/apis/resource.k8s.io/v1/resourceclaimtemplates"
DEVICE_CLASSES = "/apis/resource.k8s.io/v1/deviceclasses"
KINDS = {
    "Pod": PODS,
    "Job": JOBS,
    "CronJob": CRONJOBS,
    "Deployment": DEPLOYMENTS,
    "ReplicaSet": REPLICASETS,
    "StatefulSet": STATEFULSETS,
    "JobSet": JOBSETS,
    "PyTorchJob": PYTORCHJOBS,
    "LeaderWorkerSet": LEADERWORKERSETS,
    "DaemonSet": DAEMONSETS,
    "PodGroup": PODGROUPS,
    "ResourceClaim": CLAIMS,
    "ResourceClaimTemplate": CLAIM_TEMPLATES,
}
WORKLOAD_GANGS = ("Job", "JobSet", "PyTorchJob", "LeaderWorkerSet")
GANGS = (*WORKLOAD_GANGS, "PodGroup")
"""Kinds whose pods are charged as a whole, where there is more than one. A PodGroup is booked with its first pod."""

WITHOUT_PODS = ("PodGroup", "ResourceClaim", "ResourceClaimTemplate")
"""Kinds that make no pods."""

GPU = "nvidia.com/gpu"
DEVICE_CLASS = "gpu.nvidia.com"
GATE, KUEUES_GATE = "gpu-tiers.dev/quota", "kueue.x-k8s.io/admission"
GANG = "gpu-tiers.dev/gang"
GROUP_INDEX = "leaderworkerset.sigs.k8s.io/group-index"
"""On a pod of a LeaderWorkerSet, by that controller's webhook: the number of its group."""
TENANT_LABEL = "example.com/tenant"
TIER_LABEL = "gpu-tiers.dev/tier"
FLAVOR_LABEL = "nvidia.com/gpu.product"
RUN, LINGER = "honest/run-seconds", "honest/linger-seconds"
"""Annotations: after how many seconds a pod succeeds (0: never), and how many it needs to end when it is deleted."""
CLAIMED, ADMITTED = "honest/claimed-gpus", "honest/kueue-seconds"
"""Annotations: the GPUs that a pod gets by its claim, and after how many seconds Kueue lifts its gate."""
FOREGROUND, PROTECTED = "foregroundDeletion", "scheduling.k8s.io/podgroup-protection"
ON_NODE = "requiredDuringSchedulingIgnoredDuringExecution"
DELETED_AT = "2026-11-01T09:00:00Z"
"""Any time: no decision rests on it."""
_ENDED_CONDITIONS = ("Complete", "Completed", "Succeeded", "Failed")


def api_version(kind: str) -> str:
    parts = KINDS[kind].strip("/").split("/")
    return "v1" if parts[0] == "api" else f"{parts[1]}/{parts[2]}"


def copy(tree: Any) -> Any:
    return json.loads(json.dumps(tree))


def pod_template(action: Tree) -> Tree:
    """Return the pod template that an action of a history describes."""
    gpus, tier, flavor = action["gpus"], action.get("tier"), action.get("flavor")
    container: Tree = {"name": "main", "image": "work:1"}
    annotations = {RUN: str(action.get("run", 0)), LINGER: str(action.get("linger", 2))}
    claims = []
    if gpus and action.get("claim"):
        source = "resourceClaimName" if action["claim"] == "shared" else "resourceClaimTemplateName"
        claims = [{"name": "gpu", source: f"{action['name']}-gpus"}]
        container["resources"] = {"claims": [{"name": "gpu"}]}
        annotations[CLAIMED] = str(gpus)
    elif gpus:
        container["resources"] = {"limits": {GPU: gpus}, "requests": {GPU: gpus}}
    spec: Tree = {"containers": [container], "terminationGracePeriodSeconds": action.get("grace", 30)}
    if flavor:
        spec["nodeSelector"] = {FLAVOR_LABEL: flavor}
    if claims:
        spec["resourceClaims"] = claims
    if "kueue" in action:
        spec["schedulingGates"] = [{"name": KUEUES_GATE}]
        annotations[ADMITTED] = str(action["kueue"])
    return {"metadata": {"labels": {TIER_LABEL: tier} if tier else {}, "annotations": annotations}, "spec": spec}


def with_defaults(spec: Tree) -> Tree:
    """Return a pod's spec with the API server's defaults."""
    return {
        "priority": 0,
        "preemptionPolicy": "PreemptLowerPriority",
        "schedulerName": "default-scheduler",
        "restartPolicy": "Always",
        **copy(spec),
    }


def workload(kind: str, namespace: str, name: str, spec: Tree, **metadata: Any) -> Tree:
    metadata = {"namespace": namespace, "name": name, **metadata}
    return {"apiVersion": api_version(kind), "kind": kind, "metadata": metadata, "spec": spec}


def selected(template: Tree, labels: Mapping[str, str]) -> Tree:
    """Return the fields of a controller's spec by which it knows the pods of a template."""
    own = copy(template)
    own.setdefault("metadata", {}).setdefault("labels", {}).update(labels)
    return {"template": own, "selector": {"matchLabels": dict(labels)}}


def key_of(tree: Tree) -> Key:
    return tree["metadata"]["namespace"], tree["metadata"]["name"]


def uid_of(tree: Tree) -> str:
    uid: str = tree["metadata"]["uid"]
    return uid


def controller_of(tree: Tree) -> Tree | None:
    """Return the reference to the controller of an object."""
    return next((each for each in tree["metadata"].get("ownerReferences", ()) if each.get("controller")), None)


def is_made_by(tree: Tree, uid: str) -> bool:
    controller = controller_of(tree)
    return controller is not None and controller["uid"] == uid


def reference_to(tree: Tree) -> Tree:
    return {
        "apiVersion": tree["apiVersion"],
        "kind": tree["kind"],
        "name": tree["metadata"]["name"],
        "uid": uid_of(tree),
        "controller": True,
        "blockOwnerDeletion": True,
    }


def gpus_of(pod: Tree) -> int:
    """Return the GPUs that a pod or a template asks for, those of its claim included."""
    claimed = int(pod["metadata"].get("annotations", {}).get(CLAIMED, 0))
    requests = (each.get("resources", {}).get("requests", {}) for each in pod["spec"]["containers"])
    return claimed + sum(int(each.get(GPU, 0)) for each in requests)


def claim_shared(pod: Tree) -> str:
    """Return the name of the ResourceClaim that a pod shares with others; "" for none."""
    return next((each["resourceClaimName"] for each in claims_of(pod) if "resourceClaimName" in each), "")


def claims_of(pod: Tree) -> list[Tree]:
    found: list[Tree] = pod["spec"].get("resourceClaims", [])
    return found


def is_gated(pod: Tree) -> bool:
    return any(each["name"] == GATE for each in pod["spec"].get("schedulingGates", ()))


def waits_for_kueue(pod: Tree) -> bool:
    return any(each["name"] == KUEUES_GATE for each in pod["spec"].get("schedulingGates", ()))


def has_any_gate(pod: Tree) -> bool:
    return bool(pod["spec"].get("schedulingGates"))


def is_terminal(pod: Tree) -> bool:
    return pod.get("status", {}).get("phase") in ("Succeeded", "Failed")


def is_deleting(tree: Tree) -> bool:
    return "deletionTimestamp" in tree["metadata"]


def is_active(pod: Tree) -> bool:
    return not is_terminal(pod) and not is_deleting(pod)


def is_ready(pod: Tree) -> bool:
    return pod.get("status", {}).get("phase") == "Running" and not is_deleting(pod)


def is_finished(tree: Tree) -> bool:
    """Tells whether a workload makes no pods any more."""
    conditions = (tree.get("status") or {}).get("conditions", ())
    return any(each["status"] == "True" and each["type"] in _ENDED_CONDITIONS for each in conditions)


def is_suspended(tree: Tree) -> bool:
    return bool(tree["spec"].get("suspend") or tree["spec"].get("runPolicy", {}).get("suspend"))


def ordinal_of(pod: Tree) -> int:
    return int(pod["metadata"]["name"].rsplit("-", 1)[1])


def group_number(pod: Tree) -> int:
    return int(pod["metadata"].get("labels", {}).get(GROUP_INDEX, 0))


def group_named(pod: Tree) -> str:
    """Return the name of the PodGroup that a pod is in; "" for none."""
    return str(pod["spec"].get("schedulingGroup", {}).get("podGroupName", ""))


def least_of(group: Tree) -> int:
    """Return with how many pods a PodGroup runs."""
    return int(group["spec"]["schedulingPolicy"]["gang"]["minCount"])


def node_named(pod: Tree) -> str:
    """Return the one node for which a DaemonSet made a pod; "" for another pod."""
    terms = pod["spec"].get("affinity", {}).get("nodeAffinity", {}).get(ON_NODE, {}).get("nodeSelectorTerms", ())
    return str(terms[0]["matchFields"][0]["values"][0]) if terms else ""


def bound_to(template: Tree, node: str) -> Tree:
    """Return the pod template of a DaemonSet for one node."""
    name = {"key": "metadata.name", "operator": "In", "values": [node]}
    affinity = {"nodeAffinity": {ON_NODE: {"nodeSelectorTerms": [{"matchFields": [name]}]}}}
    return {**template, "spec": {**template["spec"], "affinity": affinity}}


def revision_of(template: Tree) -> str:
    return hashlib.sha256(json.dumps(template, sort_keys=True).encode()).hexdigest()[:6]


def tier_of(tree: Tree) -> str:
    """Return the tier of a stored pod by its class, or of a template by its label."""
    named: str = tree["spec"].get("priorityClassName", "")
    label: str = tree.get("metadata", {}).get("labels", {}).get(TIER_LABEL, "")
    return named.removesuffix("-nonpreempting") or label


def flavor_named(tree: Tree) -> str | None:
    named: str | None = tree["spec"].get("nodeSelector", {}).get(FLAVOR_LABEL)
    return named


def created_at(tree: Tree) -> float:
    """Return when an object was created, to the second, by the clock of its history."""
    return seconds_of(tree["metadata"]["creationTimestamp"]) - 8 * 3600


def seconds_of(stamp: str) -> int:
    """Return the time of day of a timestamp in seconds."""
    hours, minutes, seconds = stamp[11:19].split(":")
    return int(hours) * 3600 + int(minutes) * 60 + int(seconds)
