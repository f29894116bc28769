"""Checks an object by the schema of its CustomResourceDefinition, as the API server would.

Only the keywords that structural schemas have. Rules in CEL are not run: whoever asks gives a function for each.
Source: https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#validation
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from webhook.objects.refusal import shown

Schema = Mapping[str, Any]
Rules = Mapping[str, Callable[[Any], bool]]
"""What an `x-kubernetes-validations` with this message asks of the value that it stands at."""

_TYPES: Mapping[str, tuple[type, str]] = {
    "object": (dict, "a map"),
    "array": (list, "a list"),
    "string": (str, "text; write it in quotes"),
    "integer": (int, "a whole number"),
}


def problems(value: object, schema: Schema, rules: Rules, path: str = "") -> list[str]:
    """What is wrong, each with its path, its value and what is accepted. Rules are asked once all else is right."""
    return [*_shape(value, schema, path)] or [*_broken_rules(value, schema, rules, path)]


def _shape(value: object, schema: Schema, path: str) -> Iterator[str]:
    wrong = _type_problem(value, schema)
    if wrong is not None:
        yield f"{path}: {_quoted(value)} should be {wrong}"
    elif isinstance(value, dict):
        yield from _fields(value, schema, path)
    elif isinstance(value, list):
        yield from _items(value, schema, path)
    else:
        yield from _scalar(value, schema, path)


def _type_problem(value: object, schema: Schema) -> str | None:
    """What it should be instead; a boolean is no number."""
    if schema.get("x-kubernetes-int-or-string"):
        fits = isinstance(value, int | str) and not isinstance(value, bool)
        return None if fits else "a whole number, or text in quotes"
    kind, words = _TYPES[schema["type"]]
    return None if isinstance(value, kind) and not isinstance(value, bool) else words


def _fields(value: Mapping[str, Any], schema: Schema, path: str) -> Iterator[str]:
    known, other = schema.get("properties", {}), schema.get("additionalProperties")
    there = _written(value)
    for name in schema.get("required", ()):
        if name not in there:
            yield f"{_below(path, name)}: is required"
    yield from _size(len(there), schema, path, "Properties", "fields")
    for name, each in there.items():
        if name in known or other:
            yield from _shape(each, known.get(name, other), _below(path, name))
        elif known:
            yield f"{_below(path, name)}: there is no such field; write one of {', '.join(known)}"


def _items(value: list[Any], schema: Schema, path: str) -> Iterator[str]:
    yield from _size(len(value), schema, path, "Items", "items")
    for index, each in enumerate(value):
        yield from _shape(each, schema["items"], f"{path}[{index}]")
        if schema.get("x-kubernetes-list-type") == "set" and each in value[:index]:
            yield f"{path}[{index}]: {_quoted(each)} is listed twice"


def _scalar(value: object, schema: Schema, path: str) -> Iterator[str]:
    if value not in schema.get("enum", (value,)):
        yield f"{path}: {_quoted(value)} is not accepted; write one of {', '.join(schema['enum'])}"
    if isinstance(value, str):
        yield from _size(len(value), schema, path, "Length", "characters")
        if not re.search(schema.get("pattern", ""), value):
            yield f"{path}: {_quoted(value)} should match {schema['pattern']}"


def _size(size: int, schema: Schema, path: str, what: str, unit: str) -> Iterator[str]:
    least, most = schema.get(f"min{what}", 0), schema.get(f"max{what}", size)
    if size < least:
        yield f"{path}: has {size} {unit}; {least} is the least"
    if size > most:
        yield f"{path}: has {size} {unit}; {most} is the most"


def _broken_rules(value: object, schema: Schema, rules: Rules, path: str) -> Iterator[str]:
    if isinstance(value, dict):
        value = _written(value)
        for name, each in value.items():
            below = schema.get("properties", {}).get(name) or schema.get("additionalProperties")
            if below:
                yield from _broken_rules(each, below, rules, _below(path, name))
    elif isinstance(value, list):
        for index, each in enumerate(value):
            yield from _broken_rules(each, schema["items"], rules, f"{path}[{index}]")
    for rule in schema.get("x-kubernetes-validations", ()):
        if not rules[rule["message"]](value):
            said = "" if isinstance(value, dict | list) else f"{_quoted(value)} "
            yield f"{path}: {said}{rule['message']}"


def _written(value: Mapping[str, Any]) -> dict[str, Any]:
    """The members: one that is null is none, as the API server has it."""
    return {name: each for name, each in value.items() if each is not None}


def _below(path: str, name: str) -> str:
    return f"{path}.{name}" if path else str(name)


def _quoted(value: object) -> str:
    if isinstance(value, dict | list):
        return "a list" if isinstance(value, list) else "a map"
    if isinstance(value, float):
        return str(value)  # as it was written: without quotes
    return "null" if value is None else f'"{shown(value)}"'
