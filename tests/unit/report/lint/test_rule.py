"""The table of rules, and what comes of asking them."""

import re

from tests.docs.markdown import page
from tests.unit.report.lint.asking import a_cluster
from webhook.policy.values.tiers import PriorityClass
from webhook.report.lint import RULES
from webhook.report.lint.rule import LintReport, Severity, fails, lint_report
from webhook.sentences.sentence import FIXES


def test_each_rule_has_an_id_of_its_own_and_says_what_to_do() -> None:
    ids = [rule.id for rule in RULES]
    assert len(set(ids)) == len(ids) > 25
    assert all(re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)+", each) for each in ids)
    assert all(FIXES[rule.id].endswith(".") for rule in RULES)


def test_no_text_says_that_each_tier_evicts_pods_without_one() -> None:
    """The lowest tier of every preset evicts nobody: preemptionPolicy Never."""
    for name in ("break-glass", "questions", "warnings", "lint"):
        text = " ".join(page(f"docs/{name}.md").text.split())
        assert not re.search(r"(every|any) (tier|GPU pod) (may |can )?evicts? ", text), text


def urgent(**parts: object) -> LintReport:
    cluster = a_cluster()
    return lint_report(a_cluster(classes={**cluster.classes, "urgent": PriorityClass("urgent", 500)}, **parts), RULES)


def test_the_worst_comes_first() -> None:
    severities = [each.severity for each in urgent().findings]
    assert severities == sorted(severities, key=list(Severity).index)
    assert severities[0] is Severity.ERROR, "there is no webhook"
    assert severities[-1] is Severity.INFO


def test_a_part_that_could_not_be_read_silences_its_rules_alone() -> None:
    report = urgent(unread={"pods": "list of pods", "configurations": "list of configurations"})
    assert [each.id for each in report.findings] == ["class-above-tiers", "serving-below-others"]
    left = {each.needs: each.rules for each in report.not_checked}
    assert {"training-without-hook", "gpus-in-pieces", "listeners-unseen"} <= {*left["list of pods"]}
    assert left["list of configurations, list of pods"] == ("gpus-in-exempt-namespace",)


def test_what_fails_a_pipeline() -> None:
    report = urgent(unread={"configurations": "list of configurations"})
    assert [fails(report.findings, each) for each in Severity] == [False, True, True]


def test_an_ignored_rule_is_not_asked() -> None:
    report = lint_report(a_cluster(), RULES, {"webhook-missing", "serving-below-others"})
    assert report.findings == ()
