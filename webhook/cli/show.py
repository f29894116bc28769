"""Shows findings to a person, and as JSON to a program; judges nothing."""

import difflib
from collections.abc import Iterator
from typing import Any

import msgspec
import yaml
from rich.console import Console
from rich.markup import escape

from webhook.cli.findings import Finding

Tree = dict[str, Any]

UNKNOWN = "this kind is not in the table (docs/workloads.md); its pods are reviewed when they are made"

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
    title = _plain(f"{finding.document.kind} {finding.document.namespace}/{finding.document.name}")
    console.print(f"[bold]{title}[/bold]", highlight=False)
    if finding.verdict.assignment is None and finding.allowed:
        console.print(f"  left alone: {'it asks for no GPU and for no tier' if finding.known else UNKNOWN}\n")
        return
    for name, text in _facts(finding):
        _fact(console, name, text)
    for part in finding.pods or (finding,):
        if part.verdict.refusal is None:
            _diff(part, console)
    console.print()


def _facts(finding: Finding) -> Iterator[tuple[str, str]]:
    assignment = finding.verdict.assignment
    yield "tier", assignment.tier.name if assignment and assignment.tier else "-"
    if assignment is not None:
        yield "why", f"{assignment.step}: {assignment.reason}"
    yield "type", str(finding.evidence) if finding.evidence else "nothing tells"
    if assignment is not None and assignment.trace:
        yield "trace", " | ".join(assignment.trace)
    yield from (("[yellow]warning[/yellow]", warning) for warning in finding.warnings)
    yield from _refusals(finding)


def _refusals(finding: Finding) -> Iterator[tuple[str, str]]:
    own = finding.verdict.refusal
    if own:
        yield "[bold red]refused[/bold red]", own
    for refusal in dict.fromkeys(pod.verdict.refusal for pod in finding.pods):
        if refusal and refusal != own:
            yield "[bold red]its pod refused[/bold red]", refusal


def _fact(console: Console, name: str, text: str) -> None:
    console.print(f"  {name}: {_plain(text)}", highlight=False, soft_wrap=True)


def _plain(text: str) -> str:
    """Without control characters: a manifest must not write to the reader's terminal as it likes."""
    return escape("".join(each if each.isprintable() else " " for each in text))


def _diff(finding: Finding, console: Console) -> None:
    if not finding.patch:
        return
    before, after = (_yaml(tree) for tree in (finding.before, finding.after))
    what = f"{finding.count} x pod of {finding.path}" if finding.path else "this object"
    console.print(f"  would change in {what}:", highlight=False)
    lines = list(difflib.unified_diff(before, after, n=1, lineterm=""))[2:]
    for line in lines:
        if not line.startswith("@@"):
            console.print(f"    {_plain(line)}", style=_STYLE.get(line[0]), highlight=False, soft_wrap=True)


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
