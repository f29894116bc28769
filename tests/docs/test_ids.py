"""Code and docs hold together by ids: each id of the code has a section, and each section has an id of the code."""

import re
from collections.abc import Iterable

import pytest

from webhook.objects.refusal import Reason
from webhook.policy.classification.commands import LONGEST as COMMAND_READ
from webhook.report.lint import AUDIT_RULES, RULES
from webhook.sentences.sentence import FIXES, LONGEST, OF_SETTING_UP, WARNINGS
from webhook.server.metric_table import TABLE

from .markdown import ROOT, Page, page

LINT, WARNINGS_PAGE, METRICS = page("docs/lint.md"), page("docs/warnings.md"), page("docs/metrics.md")


def sections(where: Page) -> dict[str, str]:
    """The text below each heading of the second level, its lines joined."""
    parts = re.split(r"^## (.+)$", where.text, flags=re.MULTILINE)[1:]
    return {title: " ".join(text.split()) for title, text in zip(parts[::2], parts[1::2], strict=True)}


def differences(ids: Iterable[str], where: Page) -> dict[str, list[str]]:
    known, written = set(ids), set(sections(where))
    return {"without a section": sorted(known - written), "without an id": sorted(written - known)}


@pytest.mark.parametrize(("ids", "where"), [(WARNINGS, WARNINGS_PAGE), (FIXES, LINT)], ids=["warnings", "lint"])
def test_each_id_has_a_section_and_each_section_an_id(ids: Iterable[str], where: Page) -> None:
    assert differences(ids, where) == {"without a section": [], "without an id": []}


@pytest.mark.parametrize("name", WARNINGS)
def test_a_warning_stands_on_its_page_as_people_read_it(name: str) -> None:
    shown = re.sub(r"\{(\w+)\}", r"<\1>", WARNINGS[name])
    section = sections(WARNINGS_PAGE)[name]
    assert section.startswith(f"``` [{name}] {shown} ``` ")
    assert section.endswith(f" [Example](../examples/warnings/{name}.yaml).")
    assert f"{LONGEST} characters" in WARNINGS_PAGE.text


@pytest.mark.parametrize("name", FIXES)
def test_the_page_begins_with_what_lint_and_audit_say_to_do(name: str) -> None:
    why, _, fix = sections(LINT)[name].partition(" Fix: ")
    assert why.endswith(".")
    assert fix.startswith(FIXES[name])


def test_a_section_of_lint_begins_with_the_severity_of_its_rule() -> None:
    rules, findings = ({each.id: each.severity for each in some} for some in (RULES, AUDIT_RULES))
    for name, text in sections(LINT).items():
        said = f"{rules[name].capitalize()}" if name in rules else f"Audit: {findings[name]}"
        assert text.startswith(f"*{said}, audit too.* " if name in rules and name in findings else f"*{said}.* "), name


def test_each_rule_has_a_fix_and_each_fix_a_rule() -> None:
    assert {each.id for each in (*RULES, *AUDIT_RULES)} == set(FIXES)


def test_a_warning_about_a_tenant_or_a_namespace_is_in_troubleshooting_by_its_id() -> None:
    spans = page("docs/troubleshooting.md").spans()
    assert [name for name in OF_SETTING_UP if f"[{name}]" not in spans] == []


def test_the_table_of_metrics_is_that_of_the_code_and_begins_with_their_help() -> None:
    rows = [line.strip("| ").split(" | ") for line in METRICS.text.splitlines() if line.startswith("| `gpu_tiers_")]
    labels = {each.name: ", ".join(f"`{label}`" for label in each.labels) for each in TABLE.values()}
    assert [row[:2] for row in rows] == [[f"`{each.name}`", labels[each.name]] for each in TABLE.values()]
    assert [each.name for row, each in zip(rows, TABLE.values(), strict=True) if not row[2].startswith(each.help)] == []
    assert f"by reason. Reasons: {', '.join(Reason)}." in METRICS.text


def test_the_metrics_that_the_code_feeds_are_those_of_the_table() -> None:
    sources = (file.read_text(encoding="utf-8") for file in (ROOT / "webhook/server").glob("*.py"))
    fed = {name for text in sources for name in re.findall(r"\bgpu_tiers_\w+", text)}
    assert fed == set(TABLE)


def test_the_page_has_the_buckets_of_each_histogram() -> None:
    text = sections(METRICS)["Buckets"]
    for each in TABLE.values():
        assert (each.kind == "counter") == each.name.endswith("_total"), each.name
        assert (each.kind == "histogram") == (f"`{each.name}`" in text), each.name
        scale = 1000 if each.name == "gpu_tiers_review_seconds" else 1
        bounds = ", ".join(f"{bound * scale:g}" for bound in each.buckets)
        assert each.kind != "histogram" or re.search(rf"`{each.name}`[^.:]*: {re.escape(bounds)}\.", text), each.name


def test_the_page_of_workloads_says_how_much_of_a_command_is_read() -> None:
    assert f"the first {COMMAND_READ:,} characters are read" in page("docs/workloads.md").text


def test_it_sees_an_id_without_a_section_and_a_section_without_an_id() -> None:
    ids = {*WARNINGS, "new-warning"} - {"queued-surge"}
    assert differences(ids, WARNINGS_PAGE) == {"without a section": ["new-warning"], "without an id": ["queued-surge"]}
