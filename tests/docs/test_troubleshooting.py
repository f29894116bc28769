"""The troubleshooting page knows every refusal and every complaint of the log, and none that does not exist."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from webhook.objects.data_files import data_file
from webhook.sentences.sentence import OF_SETTING_UP, PARTS, REFUSALS, WARNINGS, WITHOUT_ID

from .markdown import ROOT, page

MODULES = sorted([*(ROOT / "webhook").rglob("*.py"), *(ROOT / "certs").rglob("*.py")])
PLACE = re.compile(r"\{[a-z_]+(?::[^{}]*)?\}")


def as_read(text: str) -> str:
    """A text of the table as a person reads it, with the parts that stand in it and the places of the others."""
    for place, part in (("{fits}", "would-fit"), ("{allowance}", "allowance"), ("{way_out}", "ask-for-tenant")):
        text = text.replace(place, PARTS[part])
    return text.replace(":gpus}", "} GPUs").replace("{{", "{").replace("}}", "}")


TABLE = {name: as_read(text) for name, text in REFUSALS.items()}
NOT_ONE_BY_ONE = {
    "name-taken": "the API server says it in the same words",
    "unread": "it passes on what is said of a body",
    "undecided": "it passes on what is said of the ledger",
    "wrong-type": "it passes on what is said of a field",
    "hook-value-wrong": "it passes on what is said of a field",
    "unreadable": "the page has a section for it",
}
NOT_ONE_BY_ONE |= dict.fromkeys(data_file("webhook.sentences.sentence", "refusals.yaml")["apiServer"], "docs/review.md")
OFFLINE = ROOT / "webhook" / "cluster" / "offline.py"
OUR_WORDS = (
    "Refusals",
    "Something could not be read",
    "Try again",
    "Warnings",
    "A refusal, or a full quota",
    "A TenantQuota, or a namespace's label",
    "Log lines",
)
"""Sections whose first columns are words of gpu-tiers alone."""
COMPLAINTS = {"warning", "error", "exception"}


def tree(module: Path) -> ast.Module:
    return ast.parse(module.read_text(encoding="utf-8"))


def literals(node: ast.AST) -> list[str]:
    """The texts in an expression, those between the braces of an f-string too."""
    return [each.value for each in ast.walk(node) if isinstance(each, ast.Constant) and isinstance(each.value, str)]


def documented() -> list[list[str]]:
    """Return the sentences of the page, in pieces: `…` stands for what differs."""
    return [[piece.strip(" .()") for piece in span.split("…")] for span in page("docs/troubleshooting.md").spans()]


def covers(pieces: list[str], texts: list[str]) -> bool:
    """Return whether one of the longer pieces of a documented sentence occurs in one of the texts."""
    return any(piece in text for piece in pieces if len(piece) > 10 for text in texts)


def tells(pieces: list[str], text: str) -> bool:
    """Return whether a documented sentence is this text of the table, with its pieces in their order."""
    of_it = ".*".join(map(re.escape, filter(None, pieces)))
    return len("".join(pieces)) > 10 and re.search(of_it, f"object: {text}") is not None


def refusals() -> Iterator[tuple[str, list[str]]]:
    for module in MODULES:
        for node in ast.walk(tree(module)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and module != OFFLINE:
                texts = [text for text in literals(node) if len(text) > 10]
                if node.func.id in {"Unreadable", "Missing"} and texts:
                    yield f"{module.relative_to(ROOT)}:{node.lineno}", texts


def complaints() -> Iterator[tuple[str, str]]:
    for module in MODULES:
        for node in ast.walk(tree(module)):
            match node:
                case ast.Call(
                    func=ast.Attribute(value=ast.Name(id="log"), attr=level), args=[ast.Constant(value=str(event)), *_]
                ) if level in COMPLAINTS:
                    yield f"{module.relative_to(ROOT)}:{node.lineno}", event


def test_every_refusal_is_explained() -> None:
    known = documented()
    unknown = [(where, texts) for where, texts in refusals() if not any(covers(pieces, texts) for pieces in known)]
    assert unknown == []


@pytest.mark.parametrize("name", sorted(TABLE.keys() - NOT_ONE_BY_ONE.keys()))
def test_every_refusal_of_the_table_is_explained(name: str) -> None:
    assert any(tells(pieces, TABLE[name]) for pieces in documented())


def test_a_refusal_is_found_by_its_id() -> None:
    """In the row with its words, as the sentence ends with it."""
    spans = set(page("docs/troubleshooting.md").spans())
    assert [name for name in TABLE.keys() - NOT_ONE_BY_ONE.keys() if f"[{name}]" not in spans] == []


def test_every_complaint_of_the_log_is_explained() -> None:
    spans = set(page("docs/troubleshooting.md").spans())
    assert [(where, event) for where, event in complaints() if event not in spans] == []


def test_no_sentence_is_explained_that_nobody_says() -> None:
    said = [*TABLE.values(), *PARTS.values(), *WARNINGS.values(), *WITHOUT_ID.values()]
    said += [*(text for module in MODULES for text in literals(tree(module)))]
    said += [f"object: {text}" for text in TABLE.values()]
    said += [
        TABLE["unreadable"].format(problem="", what=text) for text in said if text.startswith(("find ", "choose "))
    ]
    said += [f"[{warning}] {text}" for warning, text in OF_SETTING_UP.items()]
    said += [f"[{name}]" for name in TABLE]
    text = page("docs/troubleshooting.md").prose
    for section in OUR_WORDS:
        _, there, below = text.partition(f"### {section}\n")
        assert there, section
        rows = re.split("^##", below, maxsplit=1, flags=re.MULTILINE)[0].splitlines()
        for row in rows:
            first = row.split("|")[1] if row.startswith("| `") else ""
            for sentence in first.split("`")[1::2]:
                for piece in sentence.split("…"):
                    trimmed = piece.strip(" .;:,()")
                    assert any(trimmed in each for each in said), f"{section}: {trimmed}"
