"""Finds without an API server why it would refuse a TenantQuota, by the CustomResourceDefinition's own schema.

1. The keywords of structural schemas are checked.
2. If they find no problem, the schema's CEL rules run.

Source: https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#validation
"""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import cache
from importlib import resources
from types import UnionType
from typing import Any

from webhook.config.yaml_text import trees
from webhook.objects.data_files import data_file
from webhook.objects.quantities import quantity
from webhook.objects.refusal import Refused, shown
from webhook.objects.times import unix_seconds
from webhook.objects.view import Tree
from webhook.policy.quota.tenant_quotas import API_VERSION

Schema = Mapping[str, Any]


def tenant_quota_problems(tree: Tree) -> list[str]:
    """Return every reason to refuse a TenantQuota, with the field's path. Its status is not checked."""
    if tree["apiVersion"] != API_VERSION:
        return [f'apiVersion: "{tree["apiVersion"]}" is not served; write {API_VERSION}']
    of_metadata = data_file(__name__, "metadata.yaml")
    metadata = {name: each for name, each in tree["metadata"].items() if name not in of_metadata["byTheApiServer"]}
    unnamed = [] if {"name", "generateName"} & metadata.keys() else ["metadata.name: is required"]
    written = _written({name: each for name, each in tree.items() if name != "status"})
    parts = (metadata, of_metadata["schema"], "metadata"), (written, tenant_quota_schema(), "")
    return [*unnamed, *(problem for part in parts for problem in [*_shape(*part)] or [*_broken_rules(*part)])]


@cache
def tenant_quota_schema() -> Schema:
    text = resources.files("webhook.config").joinpath("tenantquotas.gpu-tiers.dev.yaml").read_text("utf-8")
    (crd,) = trees(text)
    (version,) = crd["spec"]["versions"]  # type: ignore[index]
    found: Schema = version["schema"]["openAPIV3Schema"]
    return found


_INT_OR_STRING = "x-kubernetes-int-or-string"
_TYPES: Mapping[str, tuple[type | UnionType, str]] = {
    _INT_OR_STRING: (int | str, "a whole number, or text in quotes"),
    "object": (dict, "a map"),
    "array": (list, "a list"),
    "string": (str, "text; write it in quotes"),
    "integer": (int, "a whole number"),
}


def _shape(value: object, schema: Schema, path: str) -> Iterator[str]:  # noqa: C901, PLR0912 - a step for each type
    # 1. The type.
    kind, words = _TYPES[_INT_OR_STRING if schema.get(_INT_OR_STRING) else schema["type"]]
    if not isinstance(value, kind) or isinstance(value, bool):
        yield f"{path}: {_quoted(value)} should be {words}"

    # 2. A map: its fields are known, and required fields exist.
    elif isinstance(value, dict):
        known, other = schema.get("properties", {}), schema.get("additionalProperties")
        for name in schema.get("required", ()):
            if name not in value:
                yield f"{_below(path, name)}: is required"
        yield from _size(len(value), schema, path, "Properties", "fields")
        for name, each in value.items():
            if name in known or other:
                yield from _shape(each, known.get(name, other), _below(path, name))
            elif known:
                yield f"{_below(path, name)}: there is no such field; write one of {', '.join(known)}"

    # 3. A list: its items are valid, and in a set no item is listed twice.
    elif isinstance(value, list):
        yield from _size(len(value), schema, path, "Items", "items")
        for index, each in enumerate(value):
            yield from _shape(each, schema["items"], f"{path}[{index}]")
            if schema.get("x-kubernetes-list-type") == "set" and each in value[:index]:
                yield f"{path}[{index}]: {_quoted(each)} is listed twice"

    # 4. A scalar: its values, its limits and its pattern.
    else:
        if value not in schema.get("enum", (value,)):
            first, *others = schema["enum"]
            choice = f"one of {', '.join(schema['enum'])}" if others else f"{first}, or leave it out"
            yield f"{path}: {_quoted(value)} is not accepted; write {choice}"
        if isinstance(value, int) and value < schema.get("minimum", value):
            yield f"{path}: {_quoted(value)} should be {schema['minimum']} or more"
        if isinstance(value, str):
            yield from _size(len(value), schema, path, "Length", "characters")
            if not re.search(schema.get("pattern", ""), value):
                yield f"{path}: {_quoted(value)} should match {schema['pattern']}"
            if schema.get("format") == "date-time" and unix_seconds(value) is None:
                yield f"{path}: {_quoted(value)} is no time; write one such as 2026-12-01T00:00:00Z"


def _size(size: int, schema: Schema, path: str, what: str, unit: str) -> Iterator[str]:
    least, most = schema.get(f"min{what}", 0), schema.get(f"max{what}", size)
    if size < least:
        yield f"{path}: has {size} {unit}; {least} is the least"
    if size > most:
        yield f"{path}: has {size} {unit}; {most} is the most"


def _broken_rules(value: object, schema: Schema, path: str) -> Iterator[str]:
    if isinstance(value, dict):
        for name, each in value.items():
            below = schema.get("properties", {}).get(name) or schema.get("additionalProperties")
            if below:
                yield from _broken_rules(each, below, _below(path, name))
    elif isinstance(value, list):
        for index, each in enumerate(value):
            yield from _broken_rules(each, schema["items"], f"{path}[{index}]")
    for rule in schema.get("x-kubernetes-validations", ()):
        if not _check_of(rule["rule"])(value):
            said = "" if isinstance(value, dict | list) else f"{_quoted(value)} "
            yield f"{path}: {said}{rule['message']}"


@cache
def _check_of(rule: str) -> Callable[[object], bool]:
    """Return the function that runs a rule as the API server does, with its library for quantities.

    https://kubernetes.io/docs/reference/using-api/cel/#kubernetes-quantity-library
    """
    import cel  # noqa: PLC0415 - it takes 0.1 s, which only a TenantQuota needs

    def is_quantity(text: str) -> bool:
        with suppress(Refused):
            quantity(text, "gpus")
            return True
        return False

    def compare(one: str, other: str) -> int:
        left, right = (quantity(each, "gpus") for each in (one, other))
        return (left > right) - (left < right)

    program = cel.compile(rule)
    # A quantity stays text until it is compared, because CEL has no value for it.
    functions: dict[str, Callable[..., Any]] = {"isQuantity": is_quantity, "quantity": str, "compareTo": compare}
    return lambda value: bool(program.execute(cel.Context({"self": value}, functions)))


def _written(value: Any) -> Any:
    """Return the value without members that are null, because the API server drops them."""
    if isinstance(value, dict):
        return {name: _written(each) for name, each in value.items() if each is not None}
    return [_written(each) for each in value] if isinstance(value, list) else value


def _below(path: str, name: str) -> str:
    return f"{path}.{name}" if path else str(name)


def _quoted(value: object) -> str:
    if isinstance(value, dict | list):
        return "a list" if isinstance(value, list) else "a map"
    if isinstance(value, float):
        return str(value)  # as it was written: without quotes
    return "null" if value is None else f'"{shown(value)}"'
