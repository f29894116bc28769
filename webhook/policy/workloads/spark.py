"""The pods of a SparkApplication, whose GPUs stand in its templates, its `gpu` fields or its sparkConf.

Source: internal/webhook/sparkpod_defaulter.go and internal/controller/sparkapplication/submission.go of
kubeflow/spark-operator; KubernetesUtils.buildResourcesQuantities of apache/spark.
"""

import re

from webhook.objects.refusal import Reason, Refused
from webhook.objects.view import Tree, at, mapped
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
