"""A finding as a line of JSON, for programs."""

from typing import Any

import msgspec

from webhook.cli.finding import Finding

Tree = dict[str, Any]


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
        "grade": evidence.grade.name if evidence else None,
        "tier": assignment.tier.name if assignment and assignment.tier else None,
        "step": assignment.step if assignment else None,
        "hook": finding.hook,
        "allowed": finding.allowed,
        "message": finding.message,
        "warnings": finding.warnings,
        "patch": finding.patch,
    }
    if finding.verdict.placement:
        record["placement"] = finding.verdict.placement
    if finding.document.placeholders:
        record["placeholders"] = finding.document.placeholders
    if finding.uncounted:
        record["uncounted"] = finding.uncounted
    if finding.pods:
        record["pods"] = [_part(pod) for pod in finding.pods]
    if finding.inside:
        record["inside"] = [_part(part) for part in finding.inside]
    return record


def _part(part: Finding) -> Tree:
    return {"path": part.path, "count": part.count, **_record(part)}
