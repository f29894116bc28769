"""The injected text: two texts of all modules, always the same, that Python 3.9 reads and that import nothing else."""

import ast
import subprocess
import sys
from collections import Counter
from pathlib import Path

import listener
from webhook.policy.checkpoint.listen import HEAD, LISTENER, MODULES, START, joined, listener_texts

FOLDER = Path(listener.__file__).parent
ROOM = 67 * 1024
"""Bytes of all annotations together that this may take; an object has 256 KiB for all of its annotations."""


def test_every_module_travels() -> None:
    separate = {"__init__", START.removesuffix(".py")}
    assert set(MODULES) == {each.stem for each in FOLDER.glob("*.py")} - separate


def test_python_3_9_reads_both() -> None:
    for text in listener_texts().values():
        ast.parse(text, feature_version=(3, 9))


def test_they_are_small_and_the_same_each_time() -> None:
    texts = listener_texts()
    assert sum(len(text.encode()) for text in texts.values()) < ROOM
    assert joined((name, (FOLDER / f"{name}.py").read_text()) for name in MODULES) == texts[LISTENER]
    assert texts[LISTENER].startswith(HEAD)


def test_no_name_stands_in_two_modules() -> None:
    names: Counter[str] = Counter()
    for each in ast.parse(listener_texts()[LISTENER]).body:
        if isinstance(each, ast.FunctionDef | ast.ClassDef):
            names[each.name] += 1
        if isinstance(each, ast.Assign):
            names.update(target.id for target in each.targets if isinstance(target, ast.Name))
    assert [name for name, count in names.items() if count > 1] == []


def test_they_import_the_standard_library_alone() -> None:
    for text in listener_texts().values():
        for each in ast.parse(text).body:
            if isinstance(each, ast.Import):
                assert {name.name for name in each.names} <= sys.stdlib_module_names
            if isinstance(each, ast.ImportFrom):
                assert (each.module or "").split(".")[0] in sys.stdlib_module_names


def test_it_loads_by_itself(tmp_path: Path) -> None:
    (tmp_path / LISTENER).write_text(listener_texts()[LISTENER])
    code = "import gpu_tiers_listen as it; print(it.attach_huggingface, it.attach_lightning, it.attach_launcher)"
    run = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env={}, capture_output=True, text=True, check=True)
    assert run.stdout.count("<function attach_") == 3


def test_sitecustomize_names_functions_that_are_there() -> None:
    assigned = [each for each in ast.parse(listener_texts()[START]).body if isinstance(each, ast.Assign)]
    (table,) = [each.value for each in assigned if ast.unparse(each.targets[0]) == "_ATTACH"]
    there = {each.name for each in ast.parse(listener_texts()[LISTENER]).body if isinstance(each, ast.FunctionDef)}
    assert set(ast.literal_eval(table).values()) <= there
