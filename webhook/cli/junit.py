"""Writes JUnit XML, which CI systems show: suites of cases, each passed or failed.

GitLab shows a case's classname as its suite, and the text of a failure: https://docs.gitlab.com/ci/testing/unit_test_reports
"""

from collections.abc import Iterable
from dataclasses import dataclass
from xml.etree import ElementTree as ET


@dataclass(frozen=True, slots=True)
class JUnitCase:
    """A case, and the file and line where it stands. `failure` is "" where it has passed."""

    name: str
    file: str
    line: int
    failure: str = ""


@dataclass(frozen=True, slots=True)
class JUnitSuite:
    """The cases of one suite."""

    name: str
    cases: tuple[JUnitCase, ...]


def as_junit(suites: Iterable[JUnitSuite], name: str) -> str:
    """The whole document, under the name of what has run."""
    root = ET.Element("testsuites", name=name)
    for suite in suites:
        failures = str(sum(bool(case.failure) for case in suite.cases))
        parent = ET.SubElement(
            root, "testsuite", name=_text(suite.name), tests=str(len(suite.cases)), failures=failures, errors="0"
        )
        for case in suite.cases:
            _add(parent, case)
    ET.indent(root)
    return ET.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _add(parent: ET.Element, case: JUnitCase) -> None:
    file = _text(case.file)
    element = ET.SubElement(parent, "testcase", name=_text(case.name), classname=file, file=file, line=str(case.line))
    if case.failure:
        text = _text(case.failure)
        failure = ET.SubElement(element, "failure", message=text.partition("\n")[0], type="failure")
        failure.text = f"{file}:{case.line}\n{text}"


def _text(text: str) -> str:
    """Without the characters that XML can't carry."""
    return "".join(each if each.isprintable() or each == "\n" else " " for each in text)
