"""A finding as a line of JSON, for programs."""

from typing import Any

import msgspec

from webhook.cli.finding import Finding

Tree = dict[str, Any]


def as_json(finding: Finding) -> str:
    """One finding on one line."""
    return msgspec.json.encode(record(finding)).decode()


def record(finding: Finding) -> Tree:
    """All that is said of an object, with its place."""
    place = {"file": finding.document.file, "line": finding.document.line or None}
    return place | _record(finding)


def _record(finding: Finding) -> Tree:
    assignment, evidence = finding.verdict.assignment, finding.evidence
    found: Tree = {
        "kind": finding.document.kind,
        "namespace": finding.document.namespace,
        "name": finding.document.name,
        "workloadType": evidence.type.value if evidence else None,
        "evidence": str(evidence) if evidence else None,
        "grade": evidence.grade.name if evidence else None,
        "tier": assignment.tier.name if assignment and assignment.tier else None,
        "step": assignment.step if assignment else None,
        "hook": finding.hook,
        "allowed": finding.allowed,
        "message": finding.message,
        "warnings": finding.warnings,
        "patch": finding.patch,
    }
    if finding.unasked:
        found["unasked"] = finding.unasked
    if finding.notes:
        found["notes"] = finding.notes
    if finding.verdict.placement:
        found["placement"] = finding.verdict.placement
    if finding.document.placeholders:
        found["placeholders"] = finding.document.placeholders
    if finding.uncounted:
        found["uncounted"] = finding.uncounted
    if finding.pods:
        found["pods"] = [_part(pod) for pod in finding.pods]
    if finding.inside:
        found["inside"] = [_part(part) for part in finding.inside]
    return found


def _part(part: Finding) -> Tree:
    return {"path": part.path, "count": part.count, **_record(part)}
