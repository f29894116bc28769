"""A review as SARIF 2.1.0, which GitHub code scanning shows beside the lines: one result for each refusal and warning.

Source: https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html, and what GitHub takes of it:
https://docs.github.com/en/code-security/code-scanning/integrating-with-code-scanning/sarif-support-for-code-scanning
"""

import hashlib
import re
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path
from urllib.parse import quote

import msgspec

from webhook.cli.manifests.documents import STDIN
from webhook.cli.manifests.finding import Finding
from webhook.cli.manifests.left_out import LeftOut
from webhook.objects.view import Tree
from webhook.sentences.sentence import WARNINGS, address, has_shown_id, warning_words

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
OTHER_WARNING = "warning"

REFUSALS: Mapping[str, tuple[str, str]] = {
    "over-quota": ("Over quota", "The tenant's quota has no room for it. The message names the tiers that have."),
    "undecided": ("Not decided", "It can't be decided now, because of something that passes: try again."),
    "refused": ("Refused", "The message names the field, what is wrong with it, and what would be accepted."),
}
"""Rules for refusals: title and help. docs/troubleshooting.md has each sentence."""


def as_sarif(findings: Sequence[Finding], left_out: Sequence[LeftOut]) -> str:
    """Return the document. What was left out is a notification."""
    results: list[Tree] = []
    for finding in findings:
        if finding.message:
            results.append(_result(finding, finding.refusal_kind, "error", finding.message))
        for warning in finding.told:
            rule = warning.id if has_shown_id(warning) else OTHER_WARNING
            results.append(_result(finding, rule, "warning", warning_words(warning)))
    rules = list(dict.fromkeys(result["ruleId"] for result in results))
    for result in results:
        result["ruleIndex"] = rules.index(result["ruleId"])
    notes = [
        {
            "level": "error" if each.broken else "note",
            "message": {"text": f"{each.what}: {each.reason}"},
            "locations": [_location(each.file, each.line)],
        }
        for each in left_out
    ]
    whole = not any(each.broken for each in left_out)
    driver = {
        "name": "gpu-tiers",
        "semanticVersion": metadata.version("gpu-tiers"),
        "rules": [_rule(each) for each in rules],
    }
    run = {
        "tool": {"driver": driver},
        "invocations": [{"executionSuccessful": whole, "toolExecutionNotifications": notes}],
        "results": results,
    }
    document = {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}
    return msgspec.json.format(msgspec.json.encode(document), indent=2).decode() + "\n"


def _result(finding: Finding, rule: str, level: str, text: str) -> Tree:
    document, name = finding.document, finding.title
    return {
        "ruleId": rule,
        "level": level,
        "message": {"text": f"{name}: {text}"},
        "locations": [_location(document.file, document.line) | {"logicalLocations": [{"fullyQualifiedName": name}]}],
        # the same in the next run, wherever the object has moved in its file
        "partialFingerprints": {
            "objectAndRule/v1": hashlib.sha256(f"{document.file}\n{name}\n{rule}\n{text}".encode()).hexdigest()[:32]
        },
    }


def _location(file: str, line: int) -> Tree:
    """Return a file relative to the working folder, because CI runs in the repository, and a line, which GitHub wants.

    Rendered objects have no line: the first stands for it.
    """
    path = Path("stdin" if file == STDIN else file)
    if path.is_absolute() and path.is_relative_to(Path.cwd()):
        path = path.relative_to(Path.cwd())
    uri = path.as_uri() if path.is_absolute() else quote(path.as_posix())
    return {"physicalLocation": {"artifactLocation": {"uri": uri}, "region": {"startLine": line or 1}}}


def _rule(rule: str) -> Tree:
    if rule in REFUSALS:
        title, text = REFUSALS[rule]
        return _described(rule, title, text, "error", "docs/troubleshooting.md#refusals")
    if rule in WARNINGS:
        title = re.sub(r"\{(\w+)\}", r"<\1>", WARNINGS[rule])
        return _described(rule, title, f"{title}.", "warning", f"docs/warnings.md#{rule}")
    text = "The message says what is unusual; nothing is refused."
    return _described(rule, "Other warning", text, "warning", "docs/troubleshooting.md#warnings")


def _described(rule: str, title: str, text: str, level: str, page: str) -> Tree:
    described = {
        "id": rule,
        "name": "".join(part.capitalize() for part in rule.split("-")),
        "shortDescription": {"text": title},
        "fullDescription": {"text": text},
        "help": {"text": f"{text} See {page} of gpu-tiers.", "markdown": f"{text}\n\nSee `{page}` of gpu-tiers."},
        "defaultConfiguration": {"level": level},
        "properties": {"tags": ["kubernetes", "gpu-tiers"]},
    }
    public = address(page)
    return described | ({"helpUri": public} if public != page else {})
