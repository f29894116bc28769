"""Shortens many findings for a reader: a hook's script is shown once, and so is what a tier changes."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from webhook.cli.finding import Finding

Tree = dict[str, Any]

SAME_HOOK = "the same hook as above"


def shown_once(findings: Iterable[Finding]) -> list[Finding]:
    """The findings, without the diffs and scripts that an earlier one shows."""
    shown = _Shown()
    return [shown.shortened(each) for each in findings]


@dataclass(slots=True)
class _Shown:
    hooks: set[bytes] = field(default_factory=set)
    first: dict[tuple[str, ...], str] = field(default_factory=dict)
    """What was changed so already: the title of the first."""

    def shortened(self, finding: Finding) -> Finding:
        """One finding as it is shown after those before it."""
        changed = [each for each in (finding, *finding.pods) if each.patch and each.verdict.refusal is None]
        likes = {self.first.get(_change(each), "") for each in changed}
        if changed and "" not in likes:
            pods = tuple(replace(each, patch=()) for each in finding.pods)
            note = f"it would be changed as {' and '.join(sorted(likes))}, above"
            return replace(finding, patch=(), pods=pods, notes=(*finding.notes, note))
        for each in changed:
            self.first.setdefault(_change(each), finding.title)
        return replace(self._with_hook_once(finding), pods=tuple(map(self._with_hook_once, finding.pods)))

    def _with_hook_once(self, part: Finding) -> Finding:
        hooked = _hooked(part)
        if not hooked:
            return part
        containers = [self._of_container(each) if each in hooked else each for each in part.after["spec"]["containers"]]
        return replace(part, after=part.after | {"spec": part.after["spec"] | {"containers": containers}})

    def _of_container(self, container: Tree) -> Tree:
        lifecycle = container["lifecycle"]
        key = msgspec.json.encode(lifecycle["preStop"], order="sorted")
        if key in self.hooks:
            return container | {"lifecycle": lifecycle | {"preStop": SAME_HOOK}}
        self.hooks.add(key)
        return container


def _change(part: Finding) -> tuple[str, ...]:
    """What is like in two changes: of a pod itself or of a template, the tier, and whether it gets a hook."""
    assignment = part.verdict.assignment
    tier = assignment.tier.name if assignment and assignment.tier else ""
    return ("template" if part.path else part.document.kind, tier, "hook" if _hooked(part) else "")


def _hooked(part: Finding) -> list[Tree]:
    """The containers of a pod that get a preStop."""
    had = (part.before.get("spec") or {}).get("containers") or ()
    has = (part.after.get("spec") or {}).get("containers") or ()
    return [each for each in has if each not in had and (each.get("lifecycle") or {}).get("preStop")]
