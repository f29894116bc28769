"""What `gpu-tiers review` finds, in the lines that stand below a golden manifest.

The hook is read from what the patch changes in the pod, not from what was planned.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

from tests.builders.words import deciding_line
from webhook.cli.manifests.finding import Finding
from webhook.policy.checkpoint.hook_kinds import FOLDER, file_handler, signal_handler
from webhook.policy.checkpoint.hook_plan import DEFAULT_GRACE
from webhook.policy.classification.evidence import Evidence

Tree = dict[str, Any]


def lines_of(finding: Finding) -> Iterator[str]:
    """The outcome of one object, a fact a line."""
    yield from _evidence(finding.evidence)
    yield f"tier: {_tier(finding)}"
    if finding.verdict.assignment is not None:
        yield f"why: {deciding_line(finding.verdict.assignment)}"
    for pod in finding.pods:
        yield f"{pod.count} x pod of {pod.path}: {_tier(pod)}; {_hook(pod)}"
    if not finding.pods and finding.verdict.assignment is not None:
        yield f"hook: {_hook(finding)}"
    yield from (f"warning: {warning}" for warning in finding.warnings)
    if finding.message is not None:
        yield f"refused: {finding.message}"


def _evidence(evidence: Evidence | None) -> Iterator[str]:
    yield f"type: {evidence or 'unknown'}"
    if evidence is not None:
        against = f"; without it {evidence.otherwise}" if evidence.otherwise else ""
        yield f"grade: {evidence.grade.name.lower()}{against}"


def _tier(finding: Finding) -> str:
    assignment = finding.verdict.assignment
    return assignment.tier.name if assignment and assignment.tier else "none"


def _hook(pod: Finding) -> str:
    """What the pod has for its end that was not in it before."""
    told: dict[str, list[str]] = {}
    for container, change in _changes(pod):
        told.setdefault(change, []).append(container)
    parts = [f"{change} in {', '.join(containers)}" for change, containers in told.items()]
    if not parts and _grace(pod.after) == _grace(pod.document.tree):
        return "no hook"
    return ", ".join((*parts, f"{_grace(pod.after)} s of grace"))


def _changes(pod: Finding) -> Iterator[tuple[str, str]]:
    """The containers by name, each with a handler or a variable that it did not have."""
    before, after = (tree["spec"].get("containers") or [] for tree in (pod.document.tree, pod.after))
    for old, new in zip(before, after, strict=True):
        name = new.get("name", "its container")
        if old.get("lifecycle") != new.get("lifecycle"):
            yield name, _kind(new["lifecycle"]["preStop"])
        for variable in (new.get("env") or [])[len(old.get("env") or []) :]:
            yield name, f"{variable['name']}={variable['value']}"


def _kind(handler: Tree) -> str:
    """The name of a handler whose script is long and stands in the table; any other as it is."""
    seconds = int((re.findall(r"-lt (\d+)", str(handler)) or "0")[0])
    known = {"file": file_handler(FOLDER, seconds), "signal": signal_handler("USR1", f"{FOLDER}/done", seconds)}
    name = next((name for name, script in known.items() if script == handler), None)
    return f"{name} hook of {seconds} s" if name else f"preStop {json.dumps(handler)}"


def _grace(pod: Tree) -> int:
    return int(pod["spec"].get("terminationGracePeriodSeconds", DEFAULT_GRACE))
