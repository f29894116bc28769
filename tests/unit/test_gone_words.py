"""Words of our own that have a name in Kubernetes, Kueue or accounting are gone, and do not come back.

The model is the list in CONTRIBUTING.md. A name is read word by word: `held_pods` has `held`. Prose is what a person
reads: docstrings, comments, texts in code, sentences, charts, pages, decisions and CONTRIBUTING.md.
"""

import ast
import io
import re
import tokenize
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CODE = ("webhook", "certs", "localcluster", "installation")

IN_NAMES = {
    "held": "used, or queued",
    "heir": "replacement",
    "told": "the thing itself: sentence, lines, report",
    "untold": "unreported",
    "anew": "again",
    "apart": "separate",
    "whose": "the noun itself",
    "whom": "the noun itself",
    "beside": "the noun itself",
    "kept": "reserved, or the noun itself",
    "promise": "reservation",
    "promised": "reserved",
}
IN_PROSE = {
    r"held": "used, or queued",
    r"heirs?": "replacement",
    r"anew": "again",
    r"whom": "the noun itself",
    r"promise[ds]?": "reservation, reserved",
    r"in vain": "can never fit",
    r"in force": "active",
    r"lets? in": "admitted",
    r"kept (free|for)": "reserved",
    r"in (the|its|a|no) line\b(?! of)": "in the queue",
    r"(its|their) turn": "the head of the queue",
}


WORDS_OF_THE_LIST = re.compile(r"^\| write \|.*\n(?:\|.*\n)*", re.MULTILINE)
"""The table in CONTRIBUTING.md, which has to say which words are gone."""


def sources() -> Iterator[Path]:
    for room in CODE:
        yield from sorted((ROOT / room).rglob("*.py"))


@cache
def trees() -> dict[Path, ast.Module]:
    return {file: ast.parse(file.read_text()) for file in sources()}


def names(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield node.name
            case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield name


def words(name: str) -> list[str]:
    return re.sub(r"([a-z])([A-Z])", r"\1_\2", name).lower().split("_")


@cache
def prose() -> list[tuple[Path, str]]:
    return [*_prose()]


def _prose() -> Iterator[tuple[Path, str]]:
    for file in sources():
        for token in tokenize.generate_tokens(io.StringIO(file.read_text()).readline):
            if token.type in (tokenize.STRING, tokenize.COMMENT) and " " in token.string:
                yield file, token.string
    pages = [*(ROOT / "docs").rglob("*.md"), *(ROOT / "webhook").rglob("*.yaml"), ROOT / "README.md"]
    charts = [each for each in (ROOT / "charts/gpu-tiers").rglob("*") if each.is_file()]
    for file in (*pages, *charts):
        yield file, file.read_text()
    guide = ROOT / "CONTRIBUTING.md"
    yield guide, WORDS_OF_THE_LIST.sub("", guide.read_text())


@cache
def found_names() -> Counter[str]:
    return Counter(
        word
        for file, tree in trees().items()
        for name in {*names(tree), file.stem}
        for word in words(name)
        if word in IN_NAMES
    )


def found_prose() -> Counter[str]:
    found: Counter[str] = Counter()
    for _, text in prose():
        line = " ".join(text.split())
        for phrase in IN_PROSE:
            found[phrase] += len(re.findall(rf"\b({phrase})\b", line))
    return +found


NO_SUBJECT = {
    "Of",
    "Where",
    "What",
    "Whom",
    "Who",
    "Whose",
    "By",
    "As",
    "Those",
    "Last",
    "Nothing",
    "Whether",
    "It",
    "So",
}
"""Words with which no docstring begins: a verb or "The <noun>" comes first."""


def without_subject() -> Iterator[str]:
    for file, tree in trees().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Module):
                first = (ast.get_docstring(node) or "The").split()[0].strip(",.:")
                if first in NO_SUBJECT:
                    yield f"{file.relative_to(ROOT)}:{getattr(node, 'lineno', 1)}: {first}"


def places(phrase: str) -> str:
    where = (f"{file.relative_to(ROOT)}" for file, text in prose() if re.search(rf"\b({phrase})\b", text))
    return f'"{phrase}" → {IN_PROSE[phrase]}: {", ".join(sorted(set(where)))}'


@pytest.mark.parametrize("word", IN_NAMES)
def test_a_word_is_in_no_name(word: str) -> None:
    assert not found_names()[word], IN_NAMES[word]


def test_a_phrase_is_in_no_text() -> None:
    assert not found_prose(), "\n".join(map(places, found_prose()))


def test_a_docstring_begins_with_its_subject_or_a_verb() -> None:
    assert [*without_subject()] == []


def test_the_lists_find_what_they_look_for() -> None:
    assert words("HeldPods") == ["held", "pods"]
    assert {*names(ast.parse("def held_by(told): whose = 1"))} == {"held_by", "told", "whose"}
