"""Files and functions that a page names exist."""

import ast
import re
from pathlib import Path

import pytest

from .markdown import ROOT, Page, page, pages

_FILE = re.compile(
    r"((?:webhook|certs|charts|docs|examples|localcluster|installation|tests|requirements)/[\w./-]*)(?::(\w+))?"
)


def names_in(file: Path) -> set[str]:
    """Return the names that a module defines at its top."""
    names = set()
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names |= {target.id for target in targets if isinstance(target, ast.Name)}
    return names


def named_by(each: Page) -> list[tuple[str, str]]:
    return [(found[1], found[2] or "") for span in each.spans() if (found := _FILE.fullmatch(span))]


@pytest.mark.parametrize("each", pages(), ids=str)
def test_every_file_and_function_exists(each: Page) -> None:
    for path, name in named_by(each):
        file = next((above / path for above in (ROOT, each.path.parent) if (above / path).exists()), None)
        assert file, path
        assert not name or name in names_in(file), f"{path}:{name}"


@pytest.mark.parametrize("each", [page("CONTRIBUTING.md"), page("docs/architecture.md")], ids=str)
def test_every_module_that_is_named_without_its_folder_exists(each: Page) -> None:
    bare = {found[1] for span in each.spans() if (found := re.fullmatch(r"(\w+\.py)(?::\w+)?", span))}
    assert bare - {file.name for room in ("webhook", "certs", "tests") for file in (ROOT / room).rglob("*.py")} == set()


def test_every_page_that_the_code_points_to_exists() -> None:
    sources = [
        file
        for room in ("webhook", "certs", "localcluster", "installation", "charts")
        for file in (ROOT / room).rglob("*.*")
    ]
    texts = (
        (file, file.read_text(encoding="utf-8")) for file in sources if file.suffix in {".py", ".txt", ".yaml", ".tpl"}
    )
    pointed = {(page, file.name) for file, text in texts for page in re.findall(r"docs/[\w/-]+\.md", text)}
    assert [each for each in sorted(pointed) if not (ROOT / each[0]).exists()] == []


def test_the_architecture_names_a_function_at_each_step() -> None:
    text = page("docs/architecture.md").prose
    steps = re.findall(r"^\d+\. (.*?)(?=^\d+\. |^#|^\S)", text, re.MULTILINE | re.DOTALL)
    assert len(steps) == 14
    for step in steps:
        assert re.search(r"`webhook/[\w/]+\.py:\w+`", step), step


def test_the_architecture_names_every_room() -> None:
    rooms = {f"webhook/{folder.parent.name}/" for folder in (ROOT / "webhook").glob("*/__init__.py")}
    assert rooms <= set(page("docs/architecture.md").spans())
