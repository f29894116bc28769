"""The formats that CI systems show: JUnit XML, suites of cases, and SARIF 2.1.0, a result at a line of a file.

Sources: https://github.com/testmoapp/junitxml, https://docs.gitlab.com/ci/testing/unit_test_reports (GitLab shows a
case's classname as its suite, and the text of a failure).
https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html, and what GitHub takes of it:
https://docs.github.com/en/code-security/code-scanning/integrating-with-code-scanning/sarif-support-for-code-scanning
"""

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal
from urllib.parse import quote
from xml.etree import ElementTree as ET

import msgspec

from webhook.admission.review import flat
from webhook.cli.manifests.documents import STDIN, LeftOut
from webhook.cli.manifests.finding import Finding
from webhook.objects.view import Tree
from webhook.sentences.sentence import WARNINGS, address, has_shown_id, warning_words


class JUnitCase(msgspec.Struct, frozen=True):
    """A case with its file and line. `tag` is None if it passed, `text` says why it did not.

    `kind` is the type of the failure in a word. `said` are further lines, whether the case passed or not.
    """

    name: str
    file: str
    line: int
    tag: Literal["failure", "skipped"] | None = None
    text: str = ""
    kind: str = ""
    said: Sequence[str] = ()


class JUnitSuite(msgspec.Struct, frozen=True):
    """The cases of one suite, and lines that belong to all of them."""

    name: str
    cases: tuple[JUnitCase, ...]
    said: Sequence[str] = ()


def as_junit(suites: Iterable[JUnitSuite], name: str) -> str:
    found = list(suites)
    root = ET.Element("testsuites", {"name": name, **_counts([case for suite in found for case in suite.cases])})
    for suite in found:
        parent = ET.SubElement(root, "testsuite", {"name": _text(suite.name), **_counts(suite.cases)})
        for case in suite.cases:
            file, text = _text(case.file), _text(case.text)
            element = ET.SubElement(parent, "testcase", name=_text(case.name), classname=file, file=file, time="0")
            if case.line:
                element.set("line", str(case.line))
            if case.tag:
                attributes = {"message": text.partition("\n")[0], **({"type": case.kind} if case.kind else {})}
                where = f"{file}:{case.line}" if case.line else file
                reason = None if case.tag == "skipped" else f"{where}: {text}"
                ET.SubElement(element, case.tag, attributes).text = reason
            _say(element, case.said)
        _say(parent, suite.said)
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _counts(cases: Sequence[JUnitCase]) -> dict[str, str]:
    failed, skipped = (str(sum(case.tag == tag for case in cases)) for tag in ("failure", "skipped"))
    return {"tests": str(len(cases)), "failures": failed, "errors": "0", "skipped": skipped}


def _say(parent: ET.Element, lines: Sequence[str]) -> None:
    if lines:
        ET.SubElement(parent, "system-out").text = "\n".join(map(_text, lines))


def _text(text: str) -> str:
    """Return the text with spaces for unprintable characters, which a manifest may have and XML can't contain."""
    return "\n".join(map(flat, text.split("\n")))


SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
OTHER_WARNING = "warning"

REFUSALS: Mapping[str, tuple[str, str]] = {
    "over-quota": ("Over quota", "The tenant's quota has no room for it. The message names the tiers that have."),
    "undecided": ("Not decided", "It can't be decided now, because of something that passes: try again."),
    "refused": ("Refused", "The message names the field, what is wrong with it, and what would be accepted."),
}
"""Rules for refusals: title and help. docs/troubleshooting.md has each sentence."""


def as_sarif(findings: Sequence[Finding], left_out: Sequence[LeftOut]) -> str:
    """Return a review as SARIF: a result for each object's first refusal and each warning.

    Left-out files and documents are notifications.
    """
    from importlib import metadata  # noqa: PLC0415 - as long as a fifth of a command's start

    results: list[Tree] = []
    for finding in findings:
        if finding.message:
            results.append(_result(finding, finding.refusal_kind, "error", finding.message))
        for warning in finding.shown_warnings:
            rule = warning.id if has_shown_id(warning) else OTHER_WARNING
            results.append(_result(finding, rule, "warning", warning_words(warning)))
    rules = list(dict.fromkeys(result["ruleId"] for result in results))
    for result in results:
        result["ruleIndex"] = rules.index(result["ruleId"])
    notes = []
    for each in left_out:
        level, text = "error" if each.broken else "note", f"{each.what}: {each.reason}"
        notes.append({"level": level, "message": {"text": text}, "locations": [_location(each.file, each.line)]})
    rows = [_rule(each) for each in rules]
    driver = {"name": "gpu-tiers", "semanticVersion": metadata.version("gpu-tiers"), "rules": rows}
    invocation = {
        "executionSuccessful": not any(each.broken for each in left_out),
        "toolExecutionNotifications": notes,
    }
    run = {"tool": {"driver": driver}, "invocations": [invocation], "results": results}
    document = {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}
    return msgspec.json.format(msgspec.json.encode(document), indent=2).decode() + "\n"


def _result(finding: Finding, rule: str, level: str, text: str) -> Tree:
    document, name = finding.document, finding.title
    # the same in the next run, wherever the object is in its file
    fingerprint = hashlib.sha256(f"{document.file}\n{name}\n{rule}\n{text}".encode()).hexdigest()
    return {
        "ruleId": rule,
        "level": level,
        "message": {"text": f"{name}: {text}"},
        "locations": [_location(document.file, document.line) | {"logicalLocations": [{"fullyQualifiedName": name}]}],
        "partialFingerprints": {"objectAndRule/v1": fingerprint[:32]},
    }


def _location(file: str, line: int) -> Tree:
    """Return a SARIF location. A file below the working folder is relative to it, because CI runs in the repository.

    Rendered objects have no line, and get line 1, because GitHub needs one.
    """
    path = Path("stdin" if file == STDIN else file)
    if path.is_absolute() and path.is_relative_to(Path.cwd()):
        path = path.relative_to(Path.cwd())
    uri = path.as_uri() if path.is_absolute() else quote(path.as_posix())
    return {"physicalLocation": {"artifactLocation": {"uri": uri}, "region": {"startLine": line or 1}}}


def _rule(rule: str) -> Tree:
    level, page = "warning", "docs/troubleshooting.md#warnings"
    title, text = "Other warning", "The message says what is unusual; nothing is refused."
    if rule in REFUSALS:
        level, page = "error", "docs/troubleshooting.md#refusals"
        title, text = REFUSALS[rule]
    elif rule in WARNINGS:
        page = f"docs/warnings.md#{rule}"
        title = re.sub(r"\{(\w+)\}", r"<\1>", WARNINGS[rule])
        text = f"{title}."
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
