"""Shows findings to a person, and as JSON to a program; judges nothing."""

import difflib
from typing import Any

import msgspec
import yaml
from rich.console import Console
from rich.markup import escape

from webhook.cli.findings import Finding

Tree = dict[str, Any]

_STYLE = {"+": "green", "-": "red"}


def as_json(finding: Finding) -> str:
    """One finding on one line."""
    return msgspec.json.encode(_record(finding)).decode()


def _record(finding: Finding) -> Tree:
    assignment, evidence = finding.verdict.assignment, finding.evidence
    record: Tree = {
        "kind": finding.document.kind,
        "namespace": finding.document.namespace,
        "name": finding.document.name,
        "workloadType": evidence.type.value if evidence else None,
        "evidence": str(evidence) if evidence else None,
        "tier": assignment.tier.name if assignment and assignment.tier else None,
        "step": assignment.step if assignment else None,
        "allowed": finding.allowed,
        "message": finding.message,
        "warnings": finding.warnings,
        "patch": finding.patch,
    }
    if finding.pods:
        record["pods"] = [{"path": pod.path, "count": pod.count, **_record(pod)} for pod in finding.pods]
    return record


def as_text(finding: Finding, console: Console) -> None:
    """One finding as a person reads it: tier, why, warnings or the refusal, and what would change."""
    document, assignment = finding.document, finding.verdict.assignment
    console.print(f"[bold]{document.kind} {escape(document.namespace)}/{escape(document.name)}[/bold]", highlight=False)
    if assignment is None and finding.allowed:
        console.print("  left alone: it asks for no GPU and for no tier\n")
        return
    _fact(console, "tier", assignment.tier.name if assignment and assignment.tier else "-")
    if assignment is not None:
        _fact(console, "why", f"{assignment.step}: {assignment.reason}")
    _fact(console, "type", str(finding.evidence) if finding.evidence else "nothing tells")
    if assignment is not None and assignment.trace:
        _fact(console, "trace", " | ".join(assignment.trace))
    for warning in finding.warnings:
        _fact(console, "[yellow]warning[/yellow]", warning)
    for part in (finding, *finding.pods):
        if part.verdict.refusal:
            _fact(console, f"[bold red]{'its pod ' if part.path else ''}refused[/bold red]", part.verdict.refusal)
    for part in finding.pods or (finding,):
        _diff(part, console)
    console.print()


def _fact(console: Console, name: str, text: str) -> None:
    console.print(f"  {name}: {escape(text)}", highlight=False, soft_wrap=True)


def _diff(finding: Finding, console: Console) -> None:
    if not finding.patch:
        return
    before, after = (_yaml(tree) for tree in (finding.before, finding.after))
    what = f"{finding.count} x pod of {finding.path}" if finding.path else "this object"
    console.print(f"  would change in {what}:", highlight=False)
    lines = list(difflib.unified_diff(before, after, n=1, lineterm=""))[2:]
    for line in lines:
        if not line.startswith("@@"):
            console.print(f"    {escape(line)}", style=_STYLE.get(line[0]), highlight=False, soft_wrap=True)


class _Dumper(yaml.SafeDumper):
    """YAML in the order of the object, with scripts as blocks and nothing said by reference."""

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002 - PyYAML's signature
        """Never an alias."""
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _text)


def _yaml(tree: Tree) -> list[str]:
    return yaml.dump(tree, Dumper=_Dumper, sort_keys=False, width=4096).splitlines()
