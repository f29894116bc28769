"""The part of an answer about an object that programs may rely on, in every command."""

import re
from pathlib import Path

from webhook.report.object_verdict import ObjectVerdict

PAGE = Path(__file__).parents[3] / "docs" / "questions.md"


def test_the_page_names_the_fields_that_every_answer_has() -> None:
    section = PAGE.read_text(encoding="utf-8").partition("## For programs\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (`.*?) \| ", section, flags=re.MULTILINE)
    fields = [name for row in rows for name in re.findall(r"`(\w+)`", row)]
    assert fields == list(ObjectVerdict(kind="Pod", namespace="alpha", name="web").as_json())


def test_what_is_not_known_is_null() -> None:
    found = ObjectVerdict(kind="Pod", namespace="alpha", name="web").as_json()
    assert {name for name, value in found.items() if value is None} == {
        *("source", "tier", "step", "decidedBy", "workloadType", "evidence", "grade", "message"),
    }
