"""Reads a workload object by its row: finds its pod templates by their paths, and makes its operator's pods of them."""

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice, product

import msgspec
from msgspec.structs import replace

from webhook.objects.group_kind import POD, GroupKind
from webhook.objects.manifests import Manifest
from webhook.objects.pods import Named, Pod
from webhook.objects.refusal import OBJECT, Reason, Refused
from webhook.objects.view import Tree, all_at, at, item_at, listed, mapped, steps, view
from webhook.policy.workloads.kind_table import Form, KindRow, Templates
from webhook.policy.workloads.pod_counts import MOST_PODS, MOST_TEMPLATES, too_many_templates
from webhook.policy.workloads.workload import Member, Workload

DOMAIN = "gpu-tiers.dev/"
TEMPLATE_CLASS = "gpu-tiers.dev/template-class"
"""The annotation with the class that gpu-tiers wrote: in a pod template (`templates: Mutate`), or in a workload's field
for the class of all its pods."""

_STEP_FIELDS = frozenset({"source", "script", "computeResources"})
_PIPELINE_FIELDS = ("image", "command", "args", "env")


class PodTemplate(msgspec.Struct, frozen=True):
    """A template of a workload, as its unchecked pod. `path` is the template's place in the workload.

    `count` is the number of such pods, and `least` how many of them a gang needs. `passed` are labels and annotations
    that are written on the way to the pods, the nearest to the pods first.
    """

    path: str
    pod: object
    count: int
    least: int
    form: Form
    passed: tuple[Workload, ...] = ()


def pod_templates(tree: Tree, row: KindRow) -> Iterator[PodTemplate]:
    """Yield the templates as unchecked pods with metadata and spec, whatever their form in the workload.

    Templates of the whole objects in it are included. Raises Refused with the path of a field that is no count of pods.
    """
    yield from own_templates(tree, row)
    for taken, inner, inner_row in objects_in(tree, row):
        with _placed(taken):
            for each in pod_templates(inner, inner_row):
                yield replace(each, path=".".join((*taken, *steps(each.path))))


def objects_in(tree: Tree, row: KindRow) -> Iterator[tuple[tuple[str, ...], Tree, KindRow]]:
    """Yield the whole objects that a workload creates, each with its place and row; unknown kinds are left out."""
    rows = {each.group_kind: each for each in row.wrapped}
    for taken, found in all_at(tree, row.wraps) if row.wraps else ():
        if isinstance(found, dict):
            group = str(found.get("apiVersion", "")).rpartition("/")[0]
            inner_row = rows.get(GroupKind(group, str(found.get("kind", ""))))
            if inner_row is not None:
                yield taken, found, inner_row


def own_templates(tree: Tree, row: KindRow, name: str = "") -> Iterator[PodTemplate]:
    """Yield the templates in the workload itself, which has that name."""
    named = class_named(tree, row)
    for templates in row.templates:
        for taken, holder in all_at(tree, templates.holder):
            template = at(holder, templates.path)
            template = container_in(template) if templates.form == "parameter" else template
            if isinstance(holder, dict) and template is not None:
                place = ".".join((*taken, *steps(templates.path)))
                with _placed(taken):
                    count, pod = templates.count(holder), _pod(template, holder, templates)
                    if templates.left is not None:
                        count = min(count, templates.left(tree, holder))
                spec = mapped(pod).get("spec")
                if named and isinstance(spec, dict) and not spec.get("priorityClassName"):
                    pod = {**mapped(pod), "spec": {**spec, "priorityClassName": named}}
                times = templates.times(tree, holder)
                least = count if templates.least is None else min(templates.least(tree, holder), count)
                if count * times > MOST_PODS:
                    field, most = ".".join(taken) or OBJECT, MOST_PODS
                    raise Refused(Reason.INVALID, "too-many-pods", field, count=count * times, most=most)
                passed = tuple(_passed(tree, row, name, templates, taken))
                yield PodTemplate(place, pod, count * times, least * times, templates.form, passed)


def _passed(tree: Tree, row: KindRow, name: str, templates: Templates, taken: tuple[str, ...]) -> Iterator[Workload]:
    """Yield the labels and annotations that an operator adds for the pods of an item's template. Only texts count."""
    for each in templates.between:
        place = [step if step != "*" else taken[index] for index, step in enumerate(steps(each.metadata))]
        found = mapped(item_at(tree, place))
        labels, annotations = (
            {key: value for key, value in mapped(found.get(field)).items() if isinstance(value, str)}
            for field in ("labels", "annotations")
        )
        owner, where = each.row or row, f"{row.kind}/{name}.{'.'.join(place)}"
        yield Workload(owner, name, labels=labels, annotations=annotations, place=where)


def class_named(tree: Tree, row: KindRow) -> str:
    """Return the PriorityClass that a workload names for all its pods; "" if it names none, or gpu-tiers wrote it."""
    name = at(tree, row.class_field) if row.class_field else None
    ours = mapped(at(tree, "metadata.annotations")).get(TEMPLATE_CLASS) == name
    return name if isinstance(name, str) and not ours else ""


def _pod(template: object, holder: Tree, templates: Templates) -> object:
    if templates.made is not None:
        return templates.made(template, holder) if isinstance(template, dict) else template
    match templates.form:
        case "resources":
            return {"spec": {"containers": [{"name": "node", "resources": template}]}}
        case "container" | "parameter":
            return {"spec": {"containers": [_step(template)]}}
        case "spec":
            # KServe writes the labels and annotations next to a bare pod spec on its pods. Some people write a whole
            # pod template instead of a bare spec.
            metadata = {field: holder[field] for field in ("labels", "annotations") if field in holder}
            inner = mapped(template).get("spec")
            spec = inner if isinstance(inner, dict) else template
            # Some containers are in separate fields next to `containers`.
            own = [each for field in templates.containers if isinstance(each := mapped(spec).get(field), dict)]
            listed = mapped(spec).get("containers") or []
            if own and isinstance(listed, list):
                spec = {**mapped(spec), "containers": [*listed, *own]}
            return {"metadata": metadata, "spec": spec}
    return template


def _step(container: object) -> object:
    """Return the container with its script (Argo: source; Tekton: script) as an argument, and Tekton's resources.

    Argo calls the one container of a step main.
    """
    if not isinstance(container, dict):
        return container
    made = {"name": "main", **{field: value for field, value in container.items() if field not in _STEP_FIELDS}}
    scripts = [container[field] for field in ("source", "script") if isinstance(container.get(field), str)]
    if scripts:
        args = container.get("args")
        made["args"] = [*(args if isinstance(args, list) else ()), *scripts]
    if "computeResources" in container:
        made["resources"] = container["computeResources"]
    return made


@contextmanager
def _placed(taken: tuple[str, ...]) -> Iterator[None]:
    """Prefix the path of a refused field with that of the holder in which it is."""
    try:
        yield
    except Refused as refused:
        raise Refused.of(refused.refusal.within(".".join(taken))) from None


def container_in(parameter: object) -> Tree | None:
    """Return the container that a compiled Kubeflow pipeline describes as JSON in a parameter of its Workflow, or None.

    Its templates are the same for every pipeline, and a step's program is patched into its pod at the start. Source:
    PipelineContainerSpec in api/v2alpha1/pipeline_spec.proto and the argocompiler of kubeflow/pipelines.
    """
    text = parameter.get("value") if isinstance(parameter, dict) else None
    if not isinstance(text, str) or not text.startswith("{"):
        return None
    try:
        found = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return None
    if not isinstance(found.get("image"), str):
        return None
    # The driver makes a limit from the accelerator; `type` and `count` are its older names.
    asked = mapped(at(found, "resources.accelerator"))
    name, count = (asked.get(f"resource{each}") or asked.get(each.lower()) for each in ("Type", "Count"))
    limits = {"limits": {name: count}} if isinstance(name, str) and count else {}
    return {field: found[field] for field in _PIPELINE_FIELDS if field in found} | {"resources": limits}


def workload(tree: Tree, row: KindRow) -> Workload:
    """Return a workload object with its members. Raises Refused with the path of an invalid template."""
    metadata = view({"metadata": tree.get("metadata") or {}}, Named).metadata
    # 1. The first templates of a long pipeline are enough, because its pods are booked one by one.
    members = tuple(islice(_members(tree, row, metadata.shown_name), MOST_TEMPLATES + 1))
    if row.gang and len(members) > MOST_TEMPLATES:
        raise too_many_templates()

    # 2. One of its own fields asks for GPUs: the field is set, and not 0. The operator of a kind without templates
    #    brings them.
    fields = (found for path in row.gpu_fields for _, found in all_at(tree, path))
    asks = any(found not in (None, 0, "0", "", [], {}) for found in fields)
    brings = asks if row.gpu_fields else not any(True for _ in pod_templates(tree, row))

    # 3. It has more Indexed pods than run at once.
    jobs = [mapped(spec) for path in _JOB_SPECS for _, spec in all_at(tree, path)]
    indexed = [each for each in jobs if each.get("completionMode") == "Indexed"]
    numbers = ((each.get("completions"), each.get("parallelism", 1)) for each in indexed)
    shards = any(isinstance(all_, int) and isinstance(now, int) and all_ > now for all_, now in numbers)

    # 4. Its selector has labels and expressions; a ReplicationController's is a plain map.
    selector = mapped(at(tree, "spec.selector"))
    keys = (mapped(line).get("key") for line in listed(selector.get("matchExpressions")))
    selects = {*mapped(selector.get("matchLabels", selector)), *(key for key in keys if isinstance(key, str))}
    return Workload(
        row=row,
        name=metadata.shown_name,
        uid=metadata.uid,
        labels=metadata.labels,
        annotations=metadata.annotations,
        members=members[:MOST_TEMPLATES],
        type=next((value for path, value in row.fields.items() if at(tree, path)), None),
        runs=tuple(text for path in row.runs for _, found in all_at(tree, path) if (text := _text(found))),
        brings_gpus=brings,
        class_name=class_named(tree, row),
        shards=shards,
        in_stages=any(found == "Complete" for path in _STAGES for _, found in all_at(tree, path)),
        selects=frozenset(selects),
    )


_JOB_SPECS = ("spec", "spec.replicatedJobs.*.template.spec")
"""The specs of a Job, and of the Jobs in a JobSet."""


_STAGES = tuple(f"{place}spec.replicatedJobs.*.dependsOn.*.status" for place in ("", "runtime.spec.template."))
"""The stages of a JobSet, and of the runtime of a TrainJob."""


def _members(tree: Tree, row: KindRow, name: str) -> Iterator[Member]:
    # 1. The templates in it, with the labels on the way to their pods.
    for each in own_templates(tree, row, name):
        try:
            yield Member(each.path, view(each.pod, Pod), each.count, each.least, form=each.form, makers=each.passed)
        except Refused as refused:
            raise Refused.of(refused.refusal.of_template(each.path, bare=each.form != "template")) from None

    # 2. The whole objects in it, which make pods once they are created; a Pod has no maker.
    for taken, inner, inner_row in objects_in(tree, row):
        place = ".".join(taken)
        try:
            made = workload(inner, inner_row)
        except Refused as refused:
            raise Refused.of(refused.refusal.within(place)) from None
        itself = () if made.kind == POD else (made,)
        for member in made.members:
            path = ".".join(filter(None, (place, member.path)))
            yield replace(member, path=path, makers=(*member.makers, *itself))


def _text(found: object) -> str:
    """Return a command as one text, from a text, a list, or a container with command, args, script."""
    if isinstance(found, str):
        return found
    if isinstance(found, list):
        return " ".join(each for each in found if isinstance(each, str))
    if isinstance(found, dict):
        return " ".join(filter(None, (_text(found.get(field)) for field in ("command", "args", "script", "source"))))
    return ""


def pods_of(manifest: Manifest, row: KindRow, *, idle: bool = False) -> list[tuple[str, int, Tree]]:
    """Return one pod for each template of a workload: the template's path, the number of such pods, and the pod.

    `idle`: a workload scaled to zero counts as scaled to one. Raises Refused for an invalid template.
    """
    pods: list[tuple[str, int, Tree]] = []
    for made in own_templates(manifest.tree, row):
        count, pod = max(made.count, 1 if idle else 0), made.pod
        # The pod gets the labels and annotations for gpu-tiers on the way, because no object has them. Its own stay.
        metadata = pod.get("metadata") or {} if isinstance(pod, dict) else None
        if isinstance(pod, dict) and isinstance(metadata, dict):
            for each, field in product(made.passed, ("labels", "annotations")):
                found = each.labels if field == "labels" else each.annotations
                ours, own = {key: found[key] for key in found if key.startswith(DOMAIN)}, metadata.get(field) or {}
                if ours and isinstance(own, dict):
                    metadata = {**metadata, field: ours | own}
            pod = {**pod, "metadata": metadata} if metadata else pod
        if count:
            pods.append((made.path, count, pod_of(manifest, pod, row)))
    for place, inner, inner_row in created_by(manifest, row):
        if inner_row.group_kind == POD:
            pods.append((place, 1, pod_of(manifest, inner.tree, row)))
        else:
            inside = pods_of(inner, inner_row, idle=idle)
            pods += [(".".join(filter(None, (place, path))), count, pod) for path, count, pod in inside]
    return pods


def created_by(manifest: Manifest, row: KindRow) -> Iterator[tuple[str, Manifest, KindRow]]:
    """Yield the whole objects that a workload creates, as they would reach the API server, each with its place and row.

    An object with invalid metadata is left out, because the workload is refused for it.
    """
    for taken, tree, inner_row in objects_in(manifest.tree, row):
        written = tree.get("metadata") or {}
        if isinstance(written, dict):
            home = {"namespace": manifest.namespace, "name": manifest.name}
            metadata = home | written | {"ownerReferences": [_reference(manifest)]}
            yield ".".join(taken), Manifest(manifest.source, {**tree, "metadata": metadata}), inner_row


def pod_of(manifest: Manifest, template: object, row: KindRow) -> Tree:
    """Return a controller's pod: the template's metadata and spec, an owner reference, and the operator's labels.

    Raises Refused for an invalid template.
    """
    view(template, Pod)  # refuses an invalid pod
    made: Tree = copy.deepcopy(template) if isinstance(template, dict) else {}
    metadata = made.get("metadata") or {}
    operators = {label: value or manifest.name for label, value in row.labels.items()}
    labels = operators | (metadata.get("labels") or {})
    owners = [_reference(manifest)]
    metadata |= {"generateName": f"{manifest.name}-", "namespace": manifest.namespace, "ownerReferences": owners}
    if labels:
        metadata["labels"] = labels
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": made.get("spec") or {}}


def _reference(manifest: Manifest) -> Tree:
    kind = {"apiVersion": manifest.tree["apiVersion"], "kind": manifest.kind}
    return {**kind, "name": manifest.name, "uid": manifest.uid, "controller": True}
