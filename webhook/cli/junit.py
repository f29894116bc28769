"""Writes JUnit XML, which CI systems show: suites of cases, each passed, failed, skipped or in error.

Sources: https://github.com/testmoapp/junitxml, https://docs.gitlab.com/ci/testing/unit_test_reports (GitLab shows a
case's classname as its suite, and the text of a failure).
"""

from collections.abc import Iterable, Sequence
from typing import Literal
from xml.etree import ElementTree as ET

import msgspec

from webhook.admission.review import flat

Tag = Literal["failure", "error", "skipped"]


class JUnitCase(msgspec.Struct, frozen=True):
    """A case, and the file and line where it stands. `tag` is None where it has passed, `text` says why it has not.

    `kind` is a word for the sort of failure, and `said` are lines that belong to it whatever became of it.
    """

    name: str
    file: str
    line: int
    tag: Tag | None = None
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
            _add(parent, case)
        _say(parent, suite.said)
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _counts(cases: Sequence[JUnitCase]) -> dict[str, str]:
    tags = [case.tag for case in cases]
    named = (("failures", "failure"), ("errors", "error"), ("skipped", "skipped"))
    return {"tests": str(len(cases)), **{name: str(sum(each == tag for each in tags)) for name, tag in named}}


def _add(parent: ET.Element, case: JUnitCase) -> None:
    file = _text(case.file)
    element = ET.SubElement(parent, "testcase", name=_text(case.name), classname=file, file=file, time="0")
    where = f"{file}:{case.line}" if case.line else file
    if case.line:
        element.set("line", str(case.line))
    if case.tag:
        text = _text(case.text)
        attributes = {"message": text.partition("\n")[0], **({"type": case.kind} if case.kind else {})}
        ET.SubElement(element, case.tag, attributes).text = None if case.tag == "skipped" else f"{where}: {text}"
    _say(element, case.said)


def _say(parent: ET.Element, lines: Sequence[str]) -> None:
    if lines:
        ET.SubElement(parent, "system-out").text = "\n".join(map(_text, lines))


def _text(text: str) -> str:
    """Without the characters that XML can't carry, and a manifest may."""
    return "\n".join(map(flat, text.split("\n")))
