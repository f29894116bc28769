"""Makes the pods of operators that complete their templates: those of a SparkApplication and of a TrainJob.

1. The GPUs of a SparkApplication are in its templates, its `gpu` fields or its sparkConf. Source:
   internal/webhook/sparkpod_defaulter.go and internal/controller/sparkapplication/submission.go of
   kubeflow/spark-operator; KubernetesUtils.buildResourcesQuantities of apache/spark.
2. Kubeflow Trainer makes a JobSet of a TrainJob and its runtime. Source: newRuntimeInfo in
   pkg/runtime/core/trainingruntime.go, and the plugins jobset and mpi, of kubeflow/trainer. The overrides of pods are
   podSpecOverrides in v2.0, podTemplateOverrides in v2.1 and runtimePatches since v2.2.
"""

import re
from collections.abc import Iterator
from itertools import islice
from typing import Any

from webhook.objects.refusal import Reason, Refused
from webhook.objects.view import Tree, at, listed, mapped
from webhook.policy.workloads.pod_counts import MOST_PODS, no_count, whole

_OF_POD = ("affinity", "priorityClassName", "terminationGracePeriodSeconds", "shareProcessNamespace")
_OF_CONTAINER = ("env", "envFrom", "lifecycle", "volumeMounts")


def spark_executors(spec: Tree) -> int:
    """`executor.instances`; with dynamic allocation, the number that it starts with."""
    instances = _said(spec, "executor.instances", "spark.executor.instances")
    dynamic = str(mapped(spec.get("sparkConf")).get("spark.dynamicAllocation.enabled")).lower() == "true"
    if spec.get("dynamicAllocation") is not None:
        dynamic = at(spec, "dynamicAllocation.enabled") is True
    if not dynamic:
        return 1 if instances is None else instances
    first, least, most = (
        _said(spec, f"dynamicAllocation.{field}", f"spark.dynamicAllocation.{field}")
        for field in ("initialExecutors", "minExecutors", "maxExecutors")
    )
    return min(max(instances or 0, first or 0, least or 0), MOST_PODS if most is None else most)


def spark_driver(role: Tree, spec: Tree) -> Tree:
    """The GPUs of its template, `gpu` or `sparkConf`."""
    return _pod("driver", role, spec)


def spark_executor(role: Tree, spec: Tree) -> Tree:
    """The GPUs of its template, `gpu` or `sparkConf`."""
    return _pod("executor", role, spec)


def _pod(part: str, role: Tree, spec: Tree) -> Tree:
    """Return the template as Spark completes it. The operator adds its fields only if Spark gets no template."""
    template = mapped(role.get("template"))
    inner, added = mapped(template.get("spec")), {} if template else role
    # 1. The pod's own fields.
    nodes = (mapped(each.get("nodeSelector")) for each in (inner, spec, role))
    starting = _list(inner, "initContainers", f"{part}.template.spec") + _list(added, "initContainers", part)
    made = {**inner, **_fields(added, _OF_POD), **_fields(spec if added else {}, ("volumes",))}
    made |= {"nodeSelector": {key: value for each in nodes for key, value in each.items()}, "initContainers": starting}
    metadata = mapped(template.get("metadata"))
    for field in ("labels", "annotations"):
        metadata = metadata | {field: mapped(metadata.get(field)) | mapped(role.get(field))}

    # 2. One of the template's containers, by name or the first, is completed.
    name = f"spark-kubernetes-{part}"
    containers = _list(inner, "containers", f"{part}.template.spec") or [{"name": name}]
    place = next((i for i, each in enumerate(containers) if isinstance(each, dict) and each.get("name") == name), 0)
    main = containers[place]
    if isinstance(main, dict):
        asked, image = mapped(main.get("resources")), {"image": role.get("image") or spec.get("image")}
        limits = mapped(asked.get("limits")) | _gpus(part, added, spec)
        fields = _fields(added, _OF_CONTAINER) | _fields(image, ("image",))
        containers[place] = {**main, **fields, "resources": {**asked, "limits": limits}}
    made["containers"] = containers + _list(added, "sidecars", part)
    if role.get("serviceAccount"):
        made["serviceAccountName"] = role["serviceAccount"]
    return {"metadata": metadata, "spec": made}


def _gpus(part: str, added: Tree, spec: Tree) -> dict[str, int | None]:
    """Return the requests of sparkConf, and that of the field `gpu`."""
    # 1. spark.executor.resource.gpu.amount and its vendor; without a vendor Spark won't start.
    configuration, asked = mapped(spec.get("sparkConf")), re.compile(rf"(spark\.{part}\.resource\.([^.]+))\.amount")
    found: dict[str, int | None] = {}
    for match in filter(None, (asked.fullmatch(str(key)) for key in configuration)):
        if vendor := configuration.get(f"{match[1]}.vendor"):
            found[f"{vendor}/{match[2]}"] = _number(spec, match[0], of="GPUs")

    # 2. The field.
    gpu = added.get("gpu") or {}
    if not isinstance(gpu, dict):
        raise Refused(Reason.INVALID, "no-gpu-map", f"{part}.gpu", value=str(gpu)[:40])
    count, name = whole({part: {"gpu": gpu}}, f"{part}.gpu.quantity", 0, of="GPUs"), gpu.get("name")
    if not count:
        return found
    if not isinstance(name, str) or not name:
        raise Refused(Reason.INVALID, "gpu-name-absent", f"{part}.gpu.name")
    return {**found, name: count}


def _said(spec: Tree, path: str, key: str) -> int | None:
    """Return the number in a field, or in sparkConf."""
    return _number(spec, key) if at(spec, path) is None else whole(spec, path, 0)


def _number(spec: Tree, key: str, of: str = "pods") -> int | None:
    text = mapped(spec.get("sparkConf")).get(key)
    if text is None:
        return None
    if not re.fullmatch(r"[0-9]{1,7}", str(text)):
        raise no_count(f"sparkConf.{key}", text, of)
    return int(text)


def _fields(holder: Tree, names: tuple[str, ...]) -> Tree:
    return {name: holder[name] for name in names if holder.get(name) is not None}


def _list(holder: Tree, field: str, place: str) -> list[object]:
    found = holder.get(field) or []
    if not isinstance(found, list):
        raise Refused(Reason.INVALID, "no-list", f"{place}.{field}")
    return list(found)


_STEP = "trainer.kubeflow.org/trainjob-ancestor-step"
_MADE_ONCE = ("trainer", "dataset-initializer", "model-initializer")
_NODE = "node"
"""The name of the container that trains, and of the job in which an MPI launcher starts it."""

MOST_OVERRIDES = 128
"""Overrides of jobs that are read. The time grows with the square of their number, and Trainer 2.1 sets no bound."""


def with_runtime(train_job: Tree, runtime: Tree) -> Tree:
    """Return the TrainJob with the runtime's jobs below `runtime`, and its own fields written into them.

    `spec.trainer` is left out, because the runtime's containers contain it now.
    """
    template = mapped(at(runtime, "spec.template"))
    # 1. The TrainJob's changes of the runtime's jobs are one patch of the JobSet's spec.
    there = listed(at(template, "spec.replicatedJobs"))
    known, patch = [mapped(job).get("name") for job in there], {"replicatedJobs": list[Any]()}
    for job in islice(_overridden(train_job), MOST_OVERRIDES):
        if job.get("name") in known:
            patch = patched(patch, {"replicatedJobs": [job]})
    jobs = patched({"replicatedJobs": there}, patch)["replicatedJobs"]

    # 2. Its trainer completes them.
    trainer, policy = mapped(at(train_job, "spec.trainer")), at(runtime, "spec.mlPolicy")
    made = [_completed(each, trainer, policy) if isinstance(each, dict) else each for each in jobs]
    rest = {field: value for field, value in mapped(train_job.get("spec")).items() if field != "trainer"}

    # 3. The JobSet has labels and annotations of both.
    metadata = mapped(template.get("metadata"))
    metadata = patched(metadata, {field: mapped(at(train_job, f"spec.{field}")) for field in ("labels", "annotations")})
    for each in listed(at(train_job, "spec.runtimePatches")):
        metadata = patched(metadata, mapped(at(each, "trainingRuntimeSpec.template.metadata")))
    metadata = {field: metadata[field] for field in ("labels", "annotations") if mapped(metadata.get(field))}
    job_set = {"metadata": metadata, "spec": {"replicatedJobs": made}}
    return {**train_job, "spec": rest, "runtime": {"spec": {"template": job_set}}}


def node_alone(resources: Tree, spec: Tree) -> Tree:
    """Counted if no runtime is read, with the labels and annotations beside `trainer`."""
    metadata = {field: spec[field] for field in ("labels", "annotations") if mapped(spec.get(field))}
    return {"metadata": metadata, "spec": {"containers": [{"name": _NODE, "resources": resources}]}}


def _overridden(train_job: Tree) -> Iterator[Tree]:
    for patch in listed(at(train_job, "spec.runtimePatches")):
        yield from map(mapped, listed(at(patch, "trainingRuntimeSpec.template.spec.replicatedJobs")))
    fields = ("podTemplateOverrides", "podSpecOverrides")
    templates, specs = (listed(at(train_job, f"spec.{field}")) for field in fields)
    pods = [(each, {part: mapped(at(each, part)) for part in ("metadata", "spec")}) for each in templates]
    pods += [(each, {"spec": {k: v for k, v in mapped(each).items() if k != "targetJobs"}}) for each in specs]
    for override, pod in pods:
        for job in listed(at(override, "targetJobs")):
            yield {"name": mapped(job).get("name"), "template": {"spec": {"template": pod}}}


def _completed(job: Tree, trainer: Tree, policy: object) -> Tree:
    """Return a job of the JobSet with the number of its pods, and with their image, command and resources."""
    step, name = mapped(at(job, "template.metadata.labels")).get(_STEP), job.get("name")
    trains, mpi = step == "trainer", at(policy, "mpi") is not None
    launcher_trains = at(policy, "mpi.runLauncherAsNode") is True
    # 1. The number of pods.
    nodes = whole({"spec": {"trainer": trainer}}, "spec.trainer.numNodes", -1, of="nodes")
    if mpi and name == _NODE and nodes >= 0:
        pods = max(nodes - 1, 1) if launcher_trains else nodes
    elif trains and nodes >= 0 and not mpi:
        pods = nodes
    elif trains and policy is not None:
        pods = whole(mapped(policy), "numNodes", 1, "runtime.spec.mlPolicy.", of="nodes")
    else:
        pods = whole(job, "template.spec.parallelism", 1, f"runtime.spec.template.spec.replicatedJobs.{name}.")

    # 2. The fields of the trainer, in the container that trains.
    pod = mapped(at(job, "template.spec.template"))
    spec = mapped(pod.get("spec"))
    if trains or (launcher_trains and name == _NODE):
        said = ("image", "command", "args", "env") if trains else ("env",)
        changes = {field: trainer[field] for field in said if trainer.get(field) is not None}
        changes |= {"resources": mapped(trainer.get("resourcesPerNode"))}
        containers = [
            patched(each, changes) if isinstance(each, dict) and each.get("name") == _NODE else each
            for each in listed(spec.get("containers"))
        ]
        spec = spec | {"containers": containers}
    pod = pod | {"metadata": mapped(pod.get("metadata")), "spec": spec}
    whole_spec = mapped(at(job, "template.spec")) | {"parallelism": pods, "completions": pods, "template": pod}
    once = {"replicas": 1} if step in _MADE_ONCE else {}
    return job | once | {"template": mapped(job.get("template")) | {"spec": whole_spec}}


def patched(tree: Tree, patch: Tree) -> Tree:
    """Return the tree with the patch applied: maps are merged, lists too if their items have names.

    Source: strategic merge patch, sig-api-machinery/strategic-merge-patch.md of kubernetes/community.
    """
    return tree | {field: _merged(tree.get(field), value) for field, value in patch.items() if value is not None}


def _merged(there: object, new: object) -> object:
    if isinstance(there, dict) and isinstance(new, dict):
        return patched(there, new)
    if isinstance(there, list) and isinstance(new, list) and all(_name(each) for each in (*there, *new)):
        by_name = {_name(each): each for each in there}
        return list((by_name | {_name(each): patched(by_name.get(_name(each), {}), each) for each in new}).values())
    return new


def _name(item: object) -> str:
    name = item.get("name") if isinstance(item, dict) else None
    return name if isinstance(name, str) else ""


MAKES_PODS = {made.__name__: made for made in (spark_driver, spark_executor, node_alone, with_runtime)}
"""The functions that the table of kinds may name (policy/workloads/kinds/)."""
