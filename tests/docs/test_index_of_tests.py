"""The index of tests has each file once, and its table of control planes has each file that starts one."""

import re
from collections import Counter
from pathlib import Path

from .markdown import ROOT, page

TESTS = ROOT / "tests"
INDEX = page("tests/README.md")
_ENTRY = re.compile(r"`([\w/.]+)`")
_STARTS = re.compile(r"\b(?:ControlPlane|NodeCluster|Commands|chosen_cluster|bare_plane)\(")
ASKS_ONLY = "apiserver/test_a_persons_shell.py"
"""It asks which cluster it would be, and starts none."""


def rows(first_cell: str) -> list[list[str]]:
    """The cells of all tables whose first column has this name."""
    tables = re.findall(rf"^\| {first_cell} \|.*\n\|[-|]+\n((?:\|.*\n)+)", INDEX.prose, re.MULTILINE)
    return [[cell.strip() for cell in line.strip("|").split("|")] for table in tables for line in table.splitlines()]


def entries() -> list[str]:
    return [entry for _, tests in rows("behaviour") for entry in _ENTRY.findall(tests)]


def place(file: str) -> str:
    """The entry that has a file: the file itself, or else the nearest folder above it; nothing where none has."""
    having = [each for each in entries() if file == each or (each.endswith("/") and file.startswith(each))]
    return max(having, key=len, default="")


def test_no_entry_stands_twice() -> None:
    assert [each for each, count in Counter(entries()).items() if count > 1] == []


def test_each_file_has_a_place_and_each_place_a_file() -> None:
    files = [str(each.relative_to(TESTS)) for each in TESTS.rglob("test_*.py")]
    assert [file for file in files if not place(file)] == []
    assert set(entries()) - {place(file) for file in files} == set()


def test_the_files_that_start_a_control_plane_are_those_of_the_table() -> None:
    python = [each for each in TESTS.rglob("*.py") if re.match(r"(test_|conftest)", each.name)]
    starting = {str(each.relative_to(TESTS)) for each in python if _STARTS.search(each.read_text(encoding="utf-8"))}
    named = {_ENTRY.findall(file)[0]: command.strip("`") for file, command, *_ in rows("started by")}
    assert starting - {ASKS_ONLY} == set(named)
    assert {file: command_of(TESTS / file) for file in named} == named


def command_of(file: Path) -> str:
    """The command that runs a file's tests, or those beside a conftest: by its folder, or by their marks."""
    if file.parent.name == "operators":
        return "make test-operators"
    users = file.parent.glob("test_*.py") if file.name == "conftest.py" else [file]
    of_a_release = all("pytest.mark.release" in each.read_text(encoding="utf-8") for each in users)
    return "make test-release" if of_a_release else "make test"
