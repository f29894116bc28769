"""Finds suites by their file name, and reads them with the lines of their fields. What they name has to be there."""

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import yaml
from pydantic import ValidationError
from pydantic_core import ErrorDetails

from webhook.cli.manifests.documents import BadInput
from webhook.cli.policy_tests.suite import SECTIONS, SuiteSection
from webhook.config.errors import field_path, sentence, unreadable
from webhook.config.yaml_text import NotYaml, trees

T = TypeVar("T")
U = TypeVar("U")

Place = tuple[int | str, ...]
"""The way to a field from the top of a suite."""

NAME = "gpu-tiers-test"
"""Ends the names of suites' files, before .yaml or .yml: gpu-tiers-test.yaml, serving.gpu-tiers-test.yaml."""

DEEPEST = 5
"""Steps to the deepest fields of a suite: cases, 0, used, 0, tier."""


class Suite(msgspec.Struct, frozen=True):
    """A suite as it stands in a file. `lines` are those of the fields, by their way from the top."""

    file: Path
    fields: SuiteSection
    lines: dict[Place, int]

    def at(self, *place: int | str) -> str:
        """File and line of a field, or of the nearest field around it."""
        return f"{self.file}:{_line(self.lines, place)}"


def suites(names: Iterable[str]) -> list[Suite]:
    """The suites of these files and folders. Raises BadInput with every mistake of every file."""
    return all_of(dict.fromkeys(file for name in names for file in _files(name)), _read)


def all_of(items: Iterable[T], read: Callable[[T], U]) -> list[U]:
    """What is read of each. Raises BadInput with the mistakes of all."""
    found, problems = list[U](), []
    for each in items:
        try:
            found.append(read(each))
        except BadInput as bad:
            problems.append(str(bad))
    if problems:
        raise BadInput("\n".join(problems))
    return found


def _files(name: str) -> Iterator[Path]:
    path = Path(name)
    if not path.exists():
        raise BadInput(f"{name}: there is no such file or folder")
    if not path.is_dir():
        yield path
        return
    found = sorted(each for each in path.rglob("*") if each.stem.endswith(NAME) and each.suffix in {".yaml", ".yml"})
    if not found:
        raise BadInput(f"{name}: holds no suite of tests; the names of their files end with {NAME}.yaml")
    yield from found


def _read(file: Path) -> Suite:
    try:
        text = file.read_text(encoding="utf-8")
        found = trees(text)
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"{file}: {unreadable(error)}") from None
    except NotYaml as error:
        raise BadInput(f"{file}: {error}") from None
    if len(found) != 1 or not isinstance(found[0], dict):
        raise BadInput(f"{file}: not a TierPolicyTest: expected one mapping with apiVersion, kind and cases")
    lines = dict(_lines(yaml.compose(text, Loader=yaml.SafeLoader)))
    problems = [*missing_files(file.parent, found[0])]
    try:
        fields = SuiteSection.model_validate(found[0])
    except ValidationError as error:
        problems += [(each["loc"], _sentence(each)) for each in error.errors()]
    if problems:
        told = sorted((_line(lines, place), problem) for place, problem in problems)
        raise BadInput("\n".join(f"{file}:{line}: {problem}" for line, problem in told))
    return Suite(file, fields, lines)


def _sentence(error: ErrorDetails) -> str:
    """What is wrong; of an unknown field also which there are."""
    if error["type"] != "extra_forbidden":
        return sentence(error)
    way = tuple(str(step) for step in error["loc"][:-1] if not isinstance(step, int))
    fields = (field.alias or name for name, field in SECTIONS[way].model_fields.items())
    return f"{sentence(error)}; write one of {', '.join(fields)}"


def _lines(node: Any, place: Place = ()) -> Iterator[tuple[Place, int]]:
    """A value of a mapping stands on the line of its key. What lies within an object that is applied is left out."""
    yield place, node.start_mark.line + 1
    if len(place) == DEEPEST or place[-1:] == ("workload",):
        return
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            for deeper, line in _lines(value, (*place, str(key.value))):
                yield deeper, key.start_mark.line + 1 if len(deeper) == len(place) + 1 else line
    elif isinstance(node, yaml.SequenceNode):
        for number, item in enumerate(node.value):
            yield from _lines(item, (*place, number))


def _line(lines: dict[Place, int], place: Place) -> int:
    while place not in lines:
        place = place[:-1]
    return lines[place]


def missing_files(folder: Path, tree: dict[str, Any]) -> Iterator[tuple[Place, str]]:
    """Each path that leads nowhere in a sentence, with the field's place. Paths start at the folder."""
    for place, name in _paths(tree):
        if name and isinstance(name, str) and not os.path.exists(folder / name):  # noqa: PTH110 - any name at all
            yield place, f"{field_path(place)}: {folder / name}: there is no such file or folder"


def _paths(tree: dict[str, Any]) -> Iterator[tuple[Place, object]]:
    yield ("policy",), tree.get("policy")
    for number, name in enumerate(_list(tree.get("tenants"))):
        yield ("tenants", number), name
    for number, case in enumerate(_list(tree.get("cases"))):
        yield ("cases", number, "workload"), case.get("workload") if isinstance(case, dict) else None


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
