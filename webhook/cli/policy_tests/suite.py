"""A suite of policy tests (config.gpu-tiers.dev/v1alpha1, TierPolicyTest), field by field, and how it is read.

Suites are found by their file names, and read with the lines of their fields. The files that they name have to exist.
"""

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import msgspec
import yaml
from pydantic import Field, StringConstraints, ValidationError, field_validator

from webhook.cli.manifests.documents import BadInput
from webhook.config.errors import field_path, sentence, unreadable
from webhook.config.load import DEFAULT_PRESET, accepted
from webhook.config.sections import Section
from webhook.config.yaml_text import NotYaml, trees
from webhook.objects.quantities import quantity
from webhook.objects.refusal import Refused
from webhook.objects.view import listed, mapped
from webhook.policy.values.tier_policy import HookKind
from webhook.report.object_verdict import VerdictName

Text = Annotated[str, StringConstraints(min_length=1)]
Step = Literal["group", "label", "rule", "class", "workload-type", "namespace-default", "policy-default"]
Type = Literal["training", "serving", "batch", "interactive", "unknown"]


class UsedSection(Section):
    """GPUs that other pods of the same tenant use, with their tier and flavor, as in a row of a quota.

    They count on every row that such pods count on: those of gpu-training on the tenant's total too.
    """

    gpus: Decimal = Field(gt=0)
    tier: Text | None = None
    resource_flavor: Text | None = None

    @field_validator("gpus", mode="before")
    @classmethod
    def _as_in_a_quota(cls, value: Any) -> Any:
        try:
            return quantity(value, "gpus")
        except Refused:
            problem = f'"{value}" is not a number of GPUs; write it as in a TenantQuota, such as 4 or "0.5"'
            raise ValueError(problem) from None


class ExpectSection(Section):
    """The expected result for a workload. Absent fields are not compared, except the verdict."""

    verdict: VerdictName | None = None
    tier: Text | None = None
    step: Step | None = None
    type: Type | None = None
    hook: HookKind | None = None
    message: Text | None = None
    warnings: tuple[Text, ...] | None = None

    def problems(self) -> Iterator[str]:
        if self.message is not None and self.verdict not in (None, VerdictName.DENIED):
            yield f"message is a part of the refusal, so it goes with the verdict Denied, not {self.verdict}"

    @property
    def expected_verdict(self) -> VerdictName:
        """Return the verdict; by default Allowed, and Denied if there is a message."""
        return self.verdict or (VerdictName.DENIED if self.message else VerdictName.ALLOWED)


class CaseSection(Section):
    """One workload as it is applied, and the expected result.

    `object` (Kind/name) is the object of a file with several workloads. `namespace` is where it is applied if the
    manifest names none, as in `kubectl apply -n`.
    """

    name: Text
    workload: str | dict[str, Any]
    object: str | None = None
    namespace: Text | None = None
    used: tuple[UsedSection, ...] = ()
    expect: ExpectSection

    @field_validator("workload", mode="before")
    @classmethod
    def _a_file_or_an_object(cls, value: Any) -> Any:
        if isinstance(value, dict):
            words = [isinstance(value.get(field), str) for field in ("apiVersion", "kind")]
            if not all(words) or not isinstance(value.get("metadata"), dict):
                raise ValueError("an object needs apiVersion, kind and metadata")
        elif not value or not isinstance(value, str):
            raise ValueError("should be the path of a manifest, or an object with apiVersion, kind and metadata")
        return value

    @field_validator("object")
    @classmethod
    def _kind_and_name(cls, value: str | None) -> str | None:
        if value is not None and not all(value.partition("/")):
            raise ValueError(f'"{value}" should be a kind and a name, such as Job/train')
        return value


class SuiteSection(Section):
    """A policy, the tenants of a cluster, and the cases. Paths start at the folder of the suite's file."""

    api_version: Literal["config.gpu-tiers.dev/v1alpha1"]
    kind: Literal["TierPolicyTest"]
    policy: Text | None = None
    preset: Text = DEFAULT_PRESET
    tenants: tuple[Text, ...] = ()
    cases: tuple[CaseSection, ...]

    def problems(self) -> Iterator[str]:
        if {"policy", "preset"} <= self.model_fields_set:
            yield "write policy (a file) or preset (a name), not both; a policy file names its preset itself"

    @field_validator("cases")
    @classmethod
    def _some_of_different_names(cls, cases: tuple[CaseSection, ...]) -> tuple[CaseSection, ...]:
        if not cases:
            raise ValueError("must not be empty")
        twice = [name for name, count in Counter(case.name for case in cases).items() if count > 1]
        if twice:
            raise ValueError(f'"{twice[0]}" is the name of two cases; give each its own')
        return cases


T = TypeVar("T")
U = TypeVar("U")

Place = tuple[int | str, ...]
"""The path to a field from the top of a suite."""

NAME = "gpu-tiers-test"
"""The suffix of suites' file names, before .yaml or .yml: gpu-tiers-test.yaml, serving.gpu-tiers-test.yaml."""

DEEPEST = 5
"""Steps to the deepest fields of a suite: cases, 0, used, 0, tier."""


class Suite(msgspec.Struct, frozen=True):
    """A suite as it is in a file. `lines` has the line of each field, by the field's path from the top."""

    file: Path
    fields: SuiteSection
    lines: dict[Place, int]

    def at(self, *place: int | str) -> str:
        """Return file and line of a field, or of the nearest field around it."""
        return f"{self.file}:{_line(self.lines, place)}"

    def located(self, *place: int | str) -> str:
        """Return file, line and path of a field, as the start of a sentence on a problem of it."""
        return f"{self.at(*place)}: {field_path(place)}"


def suites(names: Iterable[str]) -> list[Suite]:
    """Return the suites of these files and folders. Raises BadInput with every mistake of every file."""
    return all_of(dict.fromkeys(file for name in names for file in _files(name)), _read)


def all_of(items: Iterable[T], read: Callable[[T], U]) -> list[U]:
    """Read each item. Raises BadInput with the mistakes of all."""
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
    problems = [*_missing_files(file.parent, found[0])]
    try:
        fields = SuiteSection.model_validate(found[0])
    except ValidationError as error:
        problems += [(each["loc"], sentence(each) + accepted(each, SuiteSection)) for each in error.errors()]
    if problems:
        located = sorted((_line(lines, place), problem) for place, problem in problems)
        raise BadInput("\n".join(f"{file}:{line}: {problem}" for line, problem in located))
    return Suite(file, fields, lines)


def _lines(node: Any, place: Place = ()) -> Iterator[tuple[Place, int]]:
    """Yield the line of each field: a value of a mapping has the line of its key.

    The fields of an applied object are left out.
    """
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


def _missing_files(folder: Path, tree: dict[str, Any]) -> Iterator[tuple[Place, str]]:
    """Yield a sentence on each path that does not exist, with the field's place. Paths start at the folder."""
    names: list[tuple[Place, object]] = [(("policy",), tree.get("policy"))]
    names += [(("tenants", number), name) for number, name in enumerate(listed(tree.get("tenants")))]
    cases = enumerate(listed(tree.get("cases")))
    names += [(("cases", number, "workload"), mapped(case).get("workload")) for number, case in cases]
    for place, name in names:
        if name and isinstance(name, str) and not os.path.exists(folder / name):  # noqa: PTH110 - any name at all
            yield place, f"{field_path(place)}: {folder / name}: there is no such file or folder"
