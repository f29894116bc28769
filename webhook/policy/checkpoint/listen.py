"""Plans the listener, which saves for a program that does not know gpu-tiers, and its environment variables.

Python runs `sitecustomize.py` from PYTHONPATH before a program: https://docs.python.org/3/library/site.html. Its code
travels in annotations, which the kubelet writes as files (downwardAPI), or in an image that is mounted (KEP-4639). The
modules of `listener/` are joined into one file beside sitecustomize.py: Python finds it without a package, and a person
reads it from top to bottom. If reports are received, the kubelet also writes and renews a token for their audience:
https://kubernetes.io/docs/concepts/storage/projected-volumes/#serviceaccounttoken
"""

import ast
import functools
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import resources
from typing import Any

import msgspec

from webhook.objects.manifests import FROM_FILE
from webhook.objects.pods import Container, Pod, PodSpec, Variable
from webhook.objects.refusal import Phrase
from webhook.policy.checkpoint.hook_kinds import FOLDER, NO_PATH
from webhook.policy.checkpoint.programs import LONGEST
from webhook.policy.checkpoint.work_lost import MAX_AT_RISK
from webhook.policy.values.tier_policy import Hook
from webhook.policy.workloads.kind_table import WorkloadType
from webhook.policy.workloads.workload import Workload, gang_among

MODULES = (
    "protocol", "progress", "report", "mark", "volatile", "agree", "resume", "end", "attach", "huggingface", "replay",
    "lightning",
)  # fmt: skip
"""The modules in reading order: each uses the ones above it."""
START = "sitecustomize.py"
LISTENER = "gpu_tiers_listen.py"
HEAD = '''\
"""gpu-tiers: saves a training that knows nothing of it when its pod's hook asks, ends it with 143, and resumes it.

sitecustomize.py beside it loads it when the program imports a trainer. A fault in here is said in one line on stderr,
and the training goes on as without it.
"""

from __future__ import annotations
'''


@functools.cache
def listener_texts() -> Mapping[str, str]:
    """Return the files of the folder that comes first on a training's PYTHONPATH: name to text."""
    folder = resources.files("listener")
    modules = ((name, folder.joinpath(f"{name}.py").read_text(encoding="utf-8")) for name in MODULES)
    return {START: folder.joinpath(START).read_text(encoding="utf-8"), LISTENER: joined(modules)}


def joined(modules: Iterable[tuple[str, str]]) -> str:
    """Join several modules into one: their imports once, then each under its name with its summary."""
    imports: defaultdict[str, set[str]] = defaultdict(set)
    parts = []
    for name, text in modules:
        tree = ast.parse(text)
        end = 1
        for each in tree.body:
            if isinstance(each, ast.Import | ast.ImportFrom):
                end = (each.end_lineno or 0) + 1
            if isinstance(each, ast.Import):
                for found in each.names:
                    imports[found.name]
            elif isinstance(each, ast.ImportFrom) and not (each.module or "").startswith(("__future__", "listener.")):
                imports[each.module or ""].update(found.name for found in each.names)
        says = (ast.get_docstring(tree) or "").partition("\n\n")[0].splitlines()  # the source says why, too
        parts.append([f"# ---- {name}", *(f"# {line}".rstrip() for line in says), "", *text.splitlines()[end - 1 :]])
    bodies = ("\n".join(part).rstrip() for part in parts)
    whole = [f"import {name}" for name, names in sorted(imports.items()) if not names]
    named = [f"from {name} import {', '.join(sorted(names))}" for name, names in sorted(imports.items()) if names]
    return "\n\n\n".join([HEAD + "\n" + "\n".join((*whole, *named)), *bodies]) + "\n"


CODE = "/opt/gpu-tiers/python"
"""The folder of the files in a container, and in our image."""
VOLUME = "gpu-tiers-listener"
ANNOTATIONS = {START: "gpu-tiers.dev/listener-start", LISTENER: "gpu-tiers.dev/listener"}
"""The annotation with each file's text, by file name."""
MOST_ANNOTATIONS = 256 * 1024
"""Bytes of all annotations of an object, keys and values: TotalAnnotationSizeLimitB of the API server."""

AUDIENCE = "reports.gpu-tiers.dev"
TOKEN_FOLDER = "/var/run/secrets/gpu-tiers.dev"  # noqa: S105 - a folder
REPORT_VOLUME = "gpu-tiers-report"
TOKEN_SECONDS = 3600
"""The lifetime of a token. The kubelet renews it after four fifths."""
_TOKEN = {"audience": AUDIENCE, "expirationSeconds": TOKEN_SECONDS, "path": "token"}
_PROJECTED = {"defaultMode": 0o644, "sources": [{"serviceAccountToken": _TOKEN}]}

_PATH, _FOLDER, _RUN = "PYTHONPATH", "GPU_TIERS_FOLDER", "GPU_TIERS_RUN"
INDEX = "batch.kubernetes.io/job-completion-index"
_ISOLATED = re.compile(r"\bpython[0-9.]*(\s+-[A-Za-z]+)*\s+-[A-Za-z]*[EIS]")
"""Options with which Python ignores variables or runs no sitecustomize."""
_NO_PYTHON = re.compile(r"(^|/)(alpine|busybox|golang|julia|nginx|node|openjdk|r-base|rust)([:@]|$)")
"""Images of Docker Hub's official library without Python."""


class VolumeMounted(msgspec.Struct, frozen=True):
    """A volume, its mount path in containers, and the annotations that the pod gets with it."""

    volume: dict[str, Any]
    mount: dict[str, Any]
    annotations: Mapping[str, str] = {}


def listener(image: str) -> VolumeMounted:
    """Return the listener's volume as the API server stores it: from this `image`, or with "" from annotations."""
    mount = {"name": VOLUME, "mountPath": CODE, "readOnly": True}
    if image:
        volume = {"name": VOLUME, "image": {"reference": image, "pullPolicy": "IfNotPresent"}}
        return VolumeMounted(volume, {**mount, "subPath": CODE.lstrip("/")})
    items = [
        {"path": name, "fieldRef": {"apiVersion": "v1", "fieldPath": f"metadata.annotations['{key}']"}}
        for name, key in ANNOTATIONS.items()
    ]
    annotations = {ANNOTATIONS[name]: text for name, text in listener_texts().items()}
    return VolumeMounted({"name": VOLUME, "downwardAPI": {"items": items, "defaultMode": 0o644}}, mount, annotations)


def listener_variables(
    pod: Pod, container: Container, hook: Hook, owners: Sequence[Workload]
) -> Iterator[tuple[str, str]]:
    """Yield the name and the value of each variable that a container gets, in place of its own of that name.

    PYTHONPATH has the listener's folder before what the container or the hook says. A GPU_TIERS_RUN that the container
    sets stays.
    """
    own = _own(container, _PATH)
    before = own.value if own else "" if hook.python_path == NO_PATH else hook.python_path
    yield _PATH, before if before.split(":")[0] == CODE else ":".join(filter(None, (CODE, before)))
    if hook.path != FOLDER:
        yield _FOLDER, hook.path
    run = run_of(pod, owners)
    if run and _own(container, _RUN) is None:
        yield _RUN, run


def report_volume(max_at_risk: str = "") -> VolumeMounted:
    """Return the volume with the token, and its mount path. `max_at_risk` becomes the pod's annotation."""
    annotations = {MAX_AT_RISK: max_at_risk} if max_at_risk else {}
    mount = {"name": REPORT_VOLUME, "mountPath": TOKEN_FOLDER, "readOnly": True}
    return VolumeMounted({"name": REPORT_VOLUME, "projected": _PROJECTED}, mount, annotations)


def has_report_volume(spec: PodSpec) -> bool:
    """Tell whether an existing pod has the means to report its saves."""
    return any(each.name == REPORT_VOLUME for each in spec.volumes)


def can_report(pod: Pod) -> bool:
    """Tell whether a pod can get the volume for reports: its name is free, or our own volume has it."""
    return all(each.name != REPORT_VOLUME or each.projected == _PROJECTED for each in pod.spec.volumes)


def run_of(pod: Pod, owners: Sequence[Workload]) -> str:
    """Return the uid by which a pod finds earlier checkpoints: that of the outermost gang, which survives retries.

    A Ray cluster, a Workflow or a Notebook runs several programs, and a checkpoint of one is not for the next. The
    result is "" for these, also if a wrapper contains one, and without a gang that has a uid. Shards run several too,
    but the next try of each has its index, so the index follows the uid.
    """
    whole = gang_among(owners)
    if whole is None or whole.uid.startswith(FROM_FILE):
        return ""
    wrapped = owners[: owners.index(whole)] if whole.row.wraps else ()
    program = gang_among(wrapped) if wrapped else whole
    if program is None or program.row.usual is WorkloadType.INTERACTIVE:
        return ""
    index = pod.metadata.annotations.get(INDEX) if whole.shards else None
    return f"{whole.uid}-{index}" if index else whole.uid


def listener_obstacle(pod: Pod, hook: Hook, containers: Sequence[int], image: str) -> Phrase | None:
    """Return why the listener can't be brought into a pod; None where it can."""
    ours = listener(image)
    there = (each.downward_api or each.image for each in pod.spec.volumes if each.name == VOLUME)
    if any(each != (ours.volume.get("downwardAPI") or ours.volume.get("image")) for each in there):
        return Phrase("volume-taken", volume=VOLUME)
    texts = {**pod.metadata.annotations, **ours.annotations}.items()
    if not image and sum(len(key.encode()) + len(text.encode()) for key, text in texts) > MOST_ANNOTATIONS:
        return Phrase("annotations-full", most=MOST_ANNOTATIONS)
    for container in (pod.spec.containers[index] for index in containers):
        mounts = (f"{each.mount_path.rstrip('/')}/" for each in container.volume_mounts if each.name != VOLUME)
        if any(f"{CODE}/".startswith(path) or path.startswith(f"{CODE}/") for path in mounts):
            return Phrase("path-taken", container=container.name, path=CODE)
        own, named = _own(container, _PATH), bool(hook.python_path)
        if (own and not isinstance(own.value, str)) or (own is None and container.env_from and not named):
            return Phrase("path-from-elsewhere", container=container.name)
        if _ISOLATED.search(" ".join((*container.command, *container.args))[:LONGEST]):
            return Phrase("isolated-python", container=container.name)
        if _NO_PYTHON.search(container.image[:LONGEST]):
            return Phrase("no-python", image=container.image)
    return None


def hides_path(pod: Pod, hook: Hook, containers: Sequence[int]) -> bool:
    """Tell whether our PYTHONPATH may hide that of a container's image, which is not visible here."""
    own = [_own(pod.spec.containers[index], _PATH) for index in containers]
    return not hook.python_path and any(each is None or each.value == CODE for each in own)


def _own(container: Container, name: str) -> Variable | None:
    """Return the variable of that name that the container sets, the last of several; None if it sets none."""
    return next((each for each in reversed(container.env) if each.name == name), None)
