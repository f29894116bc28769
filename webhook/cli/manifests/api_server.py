"""Finds refusals of the API server itself: the mistakes that people make with GPUs.

1. A kind under an apiVersion that does not have it.
2. A workload's pods with a restartPolicy that its kind or podFailurePolicy does not accept, or a selector that does
   not select them.
3. A container with a resource only in requests, with another number in limits, or by a short name; with a claim that
   the pod does not declare; with a variable whose value is not quoted.
4. Pods with a priority or a preemptionPolicy, but without a PriorityClass that has it.

A patch without an image contains only changes: its missing fields may be in the object that it patches. Source:
validation.go of pkg/apis/core, apps and batch, and the admission plugin Priority, in Kubernetes 1.37.
"""

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal

from msgspec.structs import replace

from webhook.cli.manifests.documents import Document
from webhook.objects.data_files import data_file
from webhook.objects.group_kind import GroupKind
from webhook.objects.manifests import Manifest
from webhook.objects.pods import Container, Pod
from webhook.objects.quantities import quantity
from webhook.objects.refusal import Reason, Refusal, Refused
from webhook.objects.view import at, mapped, view
from webhook.policy.classification.by_shape import row_by_shape
from webhook.policy.workloads.kind_table import KindTable
from webhook.policy.workloads.templates import pod_templates

_ROWS: Sequence[Mapping[str, Sequence[str]]] = data_file(__name__, "kinds.yaml")["served"]
SERVED = {kind: row["versions"] for row in _ROWS for kind in row["kinds"]}
"""Kubernetes' own kinds near GPU workloads, with the apiVersions that serve them, the best first."""

_RUNS_AND_ENDS = {GroupKind("batch", kind) for kind in ("Job", "CronJob")}
_APPS = ("DaemonSet", "Deployment", "ReplicaSet", "StatefulSet")
_STAYS = {GroupKind("", "ReplicationController"), *(GroupKind("apps", kind) for kind in _APPS)}
_STANDARD = ("cpu", "memory", "ephemeral-storage")


def with_served_version(document: Document, kinds: KindTable) -> Document:
    """Return the document with an apiVersion that has its kind, so that its other fields can be reviewed.

    The one that its author wrote is then in `written_version`.
    """
    served = _served(document, kinds)
    if not served or str(document.tree["apiVersion"]) in served:
        return document
    tree = {**document.tree, "apiVersion": served[0]}
    return replace(document, tree=tree, written_version=str(document.tree["apiVersion"]))


def _served(document: Document, kinds: KindTable) -> Sequence[str]:
    """Return the apiVersions that have the kind of a document; none if unknown.

    A group without a dot is Kubernetes' own. For an operator's kind in such a group, such as a JobSet in `batch/v1`,
    return the operator's group, if only one operator has a kind of that name.
    """
    served = SERVED.get(document.kind, ())
    if served:
        return served if "." not in document.group or document.group == served[0].rpartition("/")[0] else ()
    groups = [row.group for row in kinds.rows if row.kind == document.kind and "." in row.group]
    version = str(document.tree["apiVersion"]).rpartition("/")[2]
    return (f"{groups[0]}/{version}",) if "." not in document.group and len(groups) == 1 else ()


def refused_by_api_server(document: Document, kinds: KindTable) -> Iterator[Refusal]:
    """Yield the refusals of one object; its pods are checked only if each of their containers has an image."""
    if document.written_version:
        version, kind = document.written_version, document.kind
        served = SERVED[kind][0] if kind in SERVED else f"an apiVersion of {document.group}"
        yield Refusal(Reason.INVALID, "kind-not-served", "apiVersion", version=version, kind=kind, served=served)
    try:
        row = kinds.by_kind.get(document.group_kind) or row_by_shape(document)
        made = [each for each in pod_templates(document.tree, row) if each.form in ("template", "spec")]
        pods = [(each, view(each.pod, Pod)) for each in made]
    except Refused:
        return  # the webhook reports the mistake
    every = [container for _, pod in pods for _, container in pod.spec.every_container()]
    if not every or not all(container.image for container in every):
        return
    for each, pod in pods:
        for refusal in (*_restarts(document, pod), *_priority(pod), *_of_containers(pod)):
            yield refusal.of_template(each.path, bare=each.form == "spec") if each.path else refusal
    yield from _selector(document, pods[0][1])


def _restarts(document: Manifest, pod: Pod) -> Iterator[Refusal]:
    policy, kind, field = pod.spec.restart_policy, document.group_kind, "spec.restartPolicy"
    if kind in _RUNS_AND_ENDS:
        if policy not in ("Never", "OnFailure"):
            mistake = "job-restarts" if policy else "job-restart-absent"
            yield Refusal(Reason.INVALID, mistake, field, kind=document.kind, policy=policy)
        spec = "spec" if kind.kind == "Job" else "spec.jobTemplate.spec"
        if policy == "OnFailure" and at(document.tree, f"{spec}.podFailurePolicy"):
            yield Refusal(Reason.INVALID, "failure-policy-restarts", field)
    elif kind in _STAYS and policy not in ("", "Always"):
        yield Refusal(Reason.INVALID, "stays-without-restart", field, kind=document.kind, policy=policy)


def _priority(pod: Pod) -> Iterator[Refusal]:
    """Yield the refusals of a priority and a policy without a class: the plugin Priority runs before every webhook.

    So no webhook can set the class in time.
    """
    spec = pod.spec
    if spec.priority_class_name:
        return
    if spec.priority:
        yield Refusal(Reason.INVALID, "priority-without-class", "spec.priority", value=str(spec.priority))
    if spec.preemption_policy not in (None, "", "PreemptLowerPriority"):
        policy = spec.preemption_policy
        yield Refusal(Reason.INVALID, "priority-without-class", "spec.preemptionPolicy", value=policy)


def _selector(document: Manifest, pod: Pod) -> Iterator[Refusal]:
    if document.group_kind not in _STAYS or not document.group:  # a ReplicationController's is derived from its labels
        return
    selector = mapped(at(document.tree, "spec.selector"))
    wanted = mapped(selector.get("matchLabels"))
    if not wanted and not selector.get("matchExpressions"):
        yield Refusal(Reason.INVALID, "selector-absent", "spec.selector", kind=document.kind)
    for key, value in wanted.items():
        if pod.metadata.labels.get(str(key)) != value:
            field = f"spec.selector.matchLabels.{key}"
            yield Refusal(Reason.INVALID, "selector-unlike-pods", field, key=str(key), value=str(value))


def _of_containers(pod: Pod) -> Iterator[Refusal]:
    claims = tuple(claim.name for claim in pod.spec.resource_claims)
    for place, container in pod.spec.every_container():
        yield from _resources(place, container)
        for index, used in enumerate(container.resources.claims):
            if used.name not in claims:
                field = f"{place}.resources.claims[{index}].name"
                yield Refusal(Reason.INVALID, "claim-not-declared", field, name=used.name, claims=claims or ("none",))
        for index, variable in enumerate(container.env):
            if isinstance(variable.value, int | float):
                value = str(variable.value).lower() if isinstance(variable.value, bool) else str(variable.value)
                yield Refusal(Reason.INVALID, "value-unquoted", f"{place}.env[{index}].value", value=value)


def _resources(place: str, container: Container) -> Iterator[Refusal]:
    requests, limits = container.resources.requests, container.resources.limits
    for name in dict.fromkeys((*limits, *requests)):
        where = "limits" if name in limits else "requests"
        if "/" not in name:
            if name not in _STANDARD and not name.startswith("hugepages-"):
                yield Refusal(Reason.INVALID, "resource-without-domain", f"{place}.resources.{where}.{name}", name=name)
        elif "kubernetes.io/" in name:
            continue  # Kubernetes' own may be overcommitted
        elif name not in limits:
            field = f"{place}.resources.limits.{name}"
            yield Refusal(Reason.INVALID, "limit-absent", field, value=str(requests[name]))
        elif name in requests and _number(requests[name]) != _number(limits[name]):
            field, request, limit = f"{place}.resources.requests.{name}", str(requests[name]), str(limits[name])
            yield Refusal(Reason.INVALID, "limit-unlike-request", field, request=request, limit=limit)


def _number(value: object) -> Decimal | str:
    """Return the quantity; the text if it is not a quantity, such as a workflow's parameter."""
    try:
        return quantity(value, "")
    except Refused:
        return str(value)
