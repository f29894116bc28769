"""The containers of a compiled Kubeflow pipeline, which stand as JSON in the parameters of its Argo Workflow.

Its templates are the same for every pipeline, and what a step runs is patched into its pod when it starts.
Source: PipelineContainerSpec in api/v2alpha1/pipeline_spec.proto and the argocompiler of kubeflow/pipelines.
"""

from typing import Any

import msgspec

Tree = dict[str, Any]

_FIELDS = ("image", "command", "args", "env")


def container_in(parameter: object) -> Tree | None:
    """The container that a parameter of the workflow describes; None where it says anything else."""
    text = parameter.get("value") if isinstance(parameter, dict) else None
    if not isinstance(text, str) or not text.startswith("{"):
        return None
    try:
        found = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return None
    if not isinstance(found.get("image"), str):
        return None
    step = {field: found[field] for field in _FIELDS if field in found}
    return {**step, "resources": _resources(found.get("resources"))}


def _resources(asked: object) -> Tree:
    """The accelerator as the limit that the driver makes of it; `type` and `count` are its older names."""
    accelerator = asked.get("accelerator") if isinstance(asked, dict) else None
    if not isinstance(accelerator, dict):
        return {}
    name = accelerator.get("resourceType") or accelerator.get("type")
    count = accelerator.get("resourceCount") or accelerator.get("count")
    return {"limits": {name: count}} if isinstance(name, str) and count else {}
