"""The pods of a SparkApplication, whose GPUs stand in its templates, its `gpu` fields or its sparkConf.

Source: internal/webhook/sparkpod_defaulter.go and internal/controller/sparkapplication/submission.go of
kubeflow/spark-operator; KubernetesUtils.buildResourcesQuantities of apache/spark.
"""

import re
from collections.abc import Iterator
from itertools import islice

import msgspec

from webhook.objects.refusal import Reason, Refused
from webhook.objects.view import Tree, at, listed, mapped
from webhook.policy.workloads.pod_counts import MOST_PODS, no_count, whole

_OF_POD = ("affinity", "priorityClassName", "terminationGracePeriodSeconds", "shareProcessNamespace")
_OF_CONTAINER = ("env", "envFrom", "lifecycle", "volumeMounts")


def executors(spec: Tree) -> int:
    """As many as `executor.instances` says; with dynamic allocation as many as it starts with."""
    instances = _said(spec, "executor.instances", "spark.executor.instances")
    if not _is_dynamic(spec):
        return 1 if instances is None else instances
    first, least, most = (
        _said(spec, f"dynamicAllocation.{field}", f"spark.dynamicAllocation.{field}")
        for field in ("initialExecutors", "minExecutors", "maxExecutors")
    )
    return min(max(instances or 0, first or 0, least or 0), MOST_PODS if most is None else most)


def driver_pod(role: Tree, spec: Tree) -> Tree:
    """GPUs from its template, `gpu` or `sparkConf`."""
    return _pod("driver", role, spec)


def executor_pod(role: Tree, spec: Tree) -> Tree:
    """GPUs from its template, `gpu` or `sparkConf`."""
    return _pod("executor", role, spec)


def _pod(part: str, role: Tree, spec: Tree) -> Tree:
    """The template as Spark completes it. The operator adds its fields only where Spark gets no template."""
    template = _map(role, "template")
    inner, added = _map(template, "spec"), {} if template else role
    made = {
        **inner,
        **_fields(added, _OF_POD),
        **_fields({"volumes": spec.get("volumes") if added else None}, ("volumes",)),
        "nodeSelector": _map(inner, "nodeSelector") | _map(spec, "nodeSelector") | _map(role, "nodeSelector"),
        "initContainers": [
            *_list(inner, "initContainers", f"{part}.template.spec"),
            *_list(added, "initContainers", part),
        ],
        "containers": _containers(part, inner, added, role, spec),
    }
    if role.get("serviceAccount"):
        made["serviceAccountName"] = role["serviceAccount"]
    return {"metadata": _metadata(template, role), "spec": made}


def _metadata(template: Tree, role: Tree) -> Tree:
    metadata = _map(template, "metadata")
    return metadata | {field: _map(metadata, field) | _map(role, field) for field in ("labels", "annotations")}


def _containers(part: str, inner: Tree, added: Tree, role: Tree, spec: Tree) -> list[object]:
    """Return those of the template, the first by name or place completed, and the sidecars."""
    name = f"spark-kubernetes-{part}"
    listed = _list(inner, "containers", f"{part}.template.spec") or [{"name": name}]
    place = next((i for i, each in enumerate(listed) if isinstance(each, dict) and each.get("name") == name), 0)
    main = listed[place]
    if isinstance(main, dict):
        asked = _map(main, "resources")
        limits = _map(asked, "limits") | _by_configuration(part, spec) | _by_field(part, added)
        image = {"image": role.get("image") or spec.get("image")}
        listed[place] = {
            **main,
            **_fields(added, _OF_CONTAINER),
            **_fields(image, ("image",)),
            "resources": {**asked, "limits": limits},
        }
    return [*listed, *_list(added, "sidecars", part)]


def _by_field(part: str, added: Tree) -> Tree:
    """Return what the field `gpu` asks for."""
    gpu = added.get("gpu") or {}
    if not isinstance(gpu, dict):
        raise Refused(Reason.INVALID, "no-gpu-map", f"{part}.gpu", value=str(gpu)[:40])
    count = whole({part: {"gpu": gpu}}, f"{part}.gpu.quantity", 0, of="GPUs")
    name = gpu.get("name")
    if not count:
        return {}
    if not isinstance(name, str) or not name:
        raise Refused(Reason.INVALID, "gpu-name-absent", f"{part}.gpu.name")
    return {name: count}


def _by_configuration(part: str, spec: Tree) -> dict[str, int | None]:
    """Return what spark.executor.resource.gpu.amount and its vendor ask for; without a vendor Spark won't start."""
    configuration, asked = _map(spec, "sparkConf"), re.compile(rf"(spark\.{part}\.resource\.([^.]+))\.amount")
    found = filter(None, (asked.fullmatch(str(key)) for key in configuration))
    vendors = ((match, configuration.get(f"{match[1]}.vendor")) for match in found)
    return {f"{vendor}/{match[2]}": _number(spec, match[0], of="GPUs") for match, vendor in vendors if vendor}


def _is_dynamic(spec: Tree) -> bool:
    if spec.get("dynamicAllocation") is not None:
        return at(spec, "dynamicAllocation.enabled") is True
    return str(_map(spec, "sparkConf").get("spark.dynamicAllocation.enabled")).lower() == "true"


def _said(spec: Tree, path: str, key: str) -> int | None:
    """The number of a field, else of sparkConf."""
    return _number(spec, key) if at(spec, path) is None else whole(spec, path, 0)


def _number(spec: Tree, key: str, of: str = "pods") -> int | None:
    text = _map(spec, "sparkConf").get(key)
    if text is None:
        return None
    if not re.fullmatch(r"[0-9]{1,7}", str(text)):
        raise no_count(f"sparkConf.{key}", text, of)
    return int(text)


def _fields(holder: Tree, names: tuple[str, ...]) -> Tree:
    return {name: holder[name] for name in names if holder.get(name) is not None}


def _map(holder: Tree, field: str) -> Tree:
    """A map; what is none is left out, since Spark takes nothing from it."""
    return mapped(holder.get(field))


def _list(holder: Tree, field: str, place: str) -> list[object]:
    found = holder.get(field) or []
    if not isinstance(found, list):
        raise Refused(Reason.INVALID, "no-list", f"{place}.{field}")
    return list(found)


_STEP = "trainer.kubeflow.org/trainjob-ancestor-step"
_MADE_ONCE = ("trainer", "dataset-initializer", "model-initializer")
_NODE = "node"
"""The name of the container that trains, and of the job that an MPI launcher starts it in."""

MOST_OVERRIDES = 128
"""Overrides of jobs that are read. The time goes with the square of their number, and Trainer 2.1 sets no bound."""


def with_runtime(train_job: Tree, runtime: Tree) -> Tree:
    """The TrainJob with the runtime's jobs below `runtime`, and its own fields written into them.

    `spec.trainer` is left out: what it says stands in the runtime's containers now.
    """
    template = mapped(at(runtime, "spec.template"))
    jobs = patched({"replicatedJobs": listed(at(template, "spec.replicatedJobs"))}, _overrides(train_job, template))
    making = _Making(mapped(at(train_job, "spec.trainer")), at(runtime, "spec.mlPolicy"))
    made = [making.job(each) if isinstance(each, dict) else each for each in jobs["replicatedJobs"]]
    rest = {field: value for field, value in mapped(train_job.get("spec")).items() if field != "trainer"}
    job_set = {"metadata": _job_set_metadata(train_job, template), "spec": {"replicatedJobs": made}}
    return {**train_job, "spec": rest, "runtime": {"spec": {"template": job_set}}}


def node_alone(resources: Tree, spec: Tree) -> Tree:
    """Counted where no runtime is read, with the labels and annotations beside `trainer`."""
    metadata = {field: spec[field] for field in ("labels", "annotations") if mapped(spec.get(field))}
    return {"metadata": metadata, "spec": {"containers": [{"name": _NODE, "resources": resources}]}}


def _job_set_metadata(train_job: Tree, template: Tree) -> Tree:
    """The labels and annotations of the JobSet."""
    metadata = mapped(template.get("metadata"))
    metadata = patched(metadata, {field: mapped(at(train_job, f"spec.{field}")) for field in ("labels", "annotations")})
    for patch in listed(at(train_job, "spec.runtimePatches")):
        metadata = patched(metadata, mapped(at(patch, "trainingRuntimeSpec.template.metadata")))
    return {field: metadata[field] for field in ("labels", "annotations") if mapped(metadata.get(field))}


def _overrides(train_job: Tree, template: Tree) -> Tree:
    """Return what the TrainJob changes in jobs of the runtime, as one patch of the JobSet's spec."""
    known = [mapped(job).get("name") for job in listed(at(template, "spec.replicatedJobs"))]
    patch: Tree = {"replicatedJobs": []}
    for job in islice(_overridden(train_job), MOST_OVERRIDES):
        if job.get("name") in known:
            patch = patched(patch, {"replicatedJobs": [job]})
    return patch


def _overridden(train_job: Tree) -> Iterator[Tree]:
    for patch in listed(at(train_job, "spec.runtimePatches")):
        yield from map(mapped, listed(at(patch, "trainingRuntimeSpec.template.spec.replicatedJobs")))
    for override in listed(at(train_job, "spec.podTemplateOverrides")):
        pod = {field: mapped(at(override, field)) for field in ("metadata", "spec")}
        yield from _targeted(override, pod)
    for override in listed(at(train_job, "spec.podSpecOverrides")):
        yield from _targeted(override, {"spec": {k: v for k, v in mapped(override).items() if k != "targetJobs"}})


def _targeted(override: object, pod: Tree) -> Iterator[Tree]:
    for job in listed(at(override, "targetJobs")):
        yield {"name": mapped(job).get("name"), "template": {"spec": {"template": pod}}}


class _Making(msgspec.Struct, frozen=True):
    """The values that complete the jobs of a runtime: the TrainJob's trainer, and the policy."""

    trainer: Tree
    policy: object

    def job(self, job: Tree) -> Tree:
        """A job of the JobSet with the number of its pods, and with their image, command and resources."""
        labels = mapped(at(job, "template.metadata.labels"))
        step, name = labels.get(_STEP), job.get("name")
        trains = step == "trainer"
        pods = self._pods(job, trains=trains, name=name)
        pod = self._pod(mapped(at(job, "template.spec.template")), trains=trains, name=name)
        spec = mapped(at(job, "template.spec")) | {"parallelism": pods, "completions": pods, "template": pod}
        once = {"replicas": 1} if step in _MADE_ONCE else {}
        return job | once | {"template": mapped(job.get("template")) | {"spec": spec}}

    def _pods(self, job: Tree, *, trains: bool, name: object) -> int:
        nodes = whole({"spec": {"trainer": self.trainer}}, "spec.trainer.numNodes", -1, of="nodes")
        if at(self.policy, "mpi") is not None and name == _NODE and nodes >= 0:
            return max(nodes - 1, 1) if self._launcher_trains else nodes
        if trains and nodes >= 0 and at(self.policy, "mpi") is None:
            return nodes
        counted = self.policy is not None and trains
        if counted:
            return whole(mapped(self.policy), "numNodes", 1, "runtime.spec.mlPolicy.", of="nodes")
        return whole(job, "template.spec.parallelism", 1, f"runtime.spec.template.spec.replicatedJobs.{name}.")

    @property
    def _launcher_trains(self) -> bool:
        return at(self.policy, "mpi.runLauncherAsNode") is True

    def _pod(self, pod: Tree, *, trains: bool, name: object) -> Tree:
        """The pod template with the TrainJob's fields."""
        spec = mapped(pod.get("spec"))
        if trains or (self._launcher_trains and name == _NODE):
            containers = [self._container(each, trains=trains) for each in listed(spec.get("containers"))]
            spec = spec | {"containers": containers}
        return pod | {"metadata": mapped(pod.get("metadata")), "spec": spec}

    def _container(self, container: object, *, trains: bool) -> object:
        if not isinstance(container, dict) or container.get("name") != _NODE:
            return container
        said = ("image", "command", "args", "env") if trains else ("env",)
        changes = {field: self.trainer[field] for field in said if self.trainer.get(field) is not None}
        return patched(container, changes | {"resources": mapped(self.trainer.get("resourcesPerNode"))})


def patched(tree: Tree, patch: Tree) -> Tree:
    """The tree with the patch laid over it: maps are merged, lists too where their items have names.

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
