"""Every value that is made has a text, which is filled by exactly the fields that the value has."""

import ast
import string
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest

import webhook
from webhook.objects.refusal import AdmissionWarning, Phrase, Reason, Refusal
from webhook.sentences.sentence import OF_SETTING_UP, PARTS, REFUSALS, WARNINGS, WITHOUT_ID, sentence

NO_TIER = Refusal(Reason.UNKNOWN_TIER, "unknown-tier", name="gold", tiers="gpu-batch")
ROOT = Path(webhook.__file__).parent
OF_WARNINGS = {**WARNINGS, **OF_SETTING_UP, **WITHOUT_ID}
TABLES: Mapping[str, Mapping[str, str]] = {
    "Refusal": REFUSALS,
    "Refused": REFUSALS,
    "AdmissionWarning": OF_WARNINGS,
    "Phrase": PARTS,
    "Aside": PARTS,
    "NobodyEvicted": PARTS,
}
BEFORE_THE_ID = {"Refusal": 1, "Refused": 1}
"""The reason stands before the id."""


@cache
def trees() -> list[tuple[Path, ast.Module]]:
    files = [file for file in sorted(ROOT.rglob("*.py")) if file.parent.name != "sentences"]
    return [(file, ast.parse(file.read_text())) for file in files]


def made() -> Iterator[tuple[str, str, str, set[str]]]:
    """Yield where a value is made: its sort, each id that it may have, and its fields."""
    for file, tree in trees():
        for node in ast.walk(tree):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or node.func.id not in TABLES:
                continue
            place, sort = BEFORE_THE_ID.get(node.func.id, 0), node.func.id
            ids = [each.value for each in ast.walk(node.args[place]) if isinstance(each, ast.Constant)]
            fields = {each.arg for each in node.keywords if each.arg and each.arg != "field"}
            if sort in ("Phrase", "Aside", "AdmissionWarning", "NobodyEvicted"):
                fields = {each.arg for each in node.keywords if each.arg}
            for each in ids:
                if isinstance(each, str) and "=" not in each and " " not in each:
                    yield f"{file.relative_to(ROOT)}:{node.lineno}", sort, each, fields


def places(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name}


def test_each_value_fills_the_places_of_its_text() -> None:
    values = list(made())
    assert len(values) > 100
    assert [(where, sort, name) for where, sort, name, _ in values if name not in TABLES[sort]] == []
    texts = [(where, name, fields, places(TABLES[sort][name])) for where, sort, name, fields in values]
    assert [each for each in texts if each[2] != each[3]] == []


def test_each_text_is_of_a_value_that_is_made() -> None:
    texts = {each.value for _, tree in trees() for each in ast.walk(tree) if isinstance(each, ast.Constant)}
    known = {*REFUSALS, *OF_WARNINGS, *PARTS}
    assert sorted(known - texts) == []


@pytest.mark.parametrize(
    "phrase", [Phrase("as-told", text="it"), AdmissionWarning("would-be-refused", refusal=NO_TIER), NO_TIER]
)
def test_a_sentence_ends_with_the_id_of_the_refusal_that_it_tells(phrase: Phrase) -> None:
    """A warning of what would be refused too; its own id stands at its beginning."""
    assert sentence(phrase).endswith(" [unknown-tier]") == (phrase.id != "as-told")
