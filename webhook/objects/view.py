"""Reads the fields that decisions need from an object's JSON: as a typed view, or by a dotted path.

Absent and null mean the same in Kubernetes' JSON; a wrong type is refused with its path. The table of kinds has dotted
paths such as `spec.tasks.*.template`.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

import msgspec
from msgspec import inspect

from webhook.objects.refusal import OBJECT, Reason, Refused


class View(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """Base of all views: camelCase on the wire, unknown fields skipped."""


V = TypeVar("V", bound=View)

_WORDS = {
    "array": "a list",
    "bool": "true or false",
    "float": "a number",
    "int": "a whole number",
    "object": "a map",
    "str": "text",
}
"""The words for JSON's types."""
_TYPE = re.compile(r"(xpected|got) `([a-z]+(?: \| [a-z]+)*)`")
_NO_CHOICE = "Invalid enum value "
_UNQUOTED = tuple(f"expected text, got {_WORDS[each]}" for each in ("int", "bool", "float"))
"""The message for `gpu-tiers.dev/checkpoint-timeout: 300` without quotes in YAML."""


def read(raw: bytes | msgspec.Raw, shape: type[V]) -> V:
    """Return an object's view from JSON bytes. Raises Refused with the field's path on a wrong type."""
    try:
        return msgspec.json.decode(raw, type=shape)
    except msgspec.ValidationError:
        return _view_without_nulls(msgspec.json.decode(raw), shape)


def view(tree: object, shape: type[V]) -> V:
    """Return an object's view from decoded JSON. Raises Refused with the field's path on a wrong type."""
    try:
        return msgspec.convert(tree, type=shape)
    except msgspec.ValidationError:
        return _view_without_nulls(tree, shape)


def _view_without_nulls(tree: object, shape: type[V]) -> V:
    try:
        return msgspec.convert(_without_nulls(tree), type=shape)
    except msgspec.ValidationError as error:
        what, _, path = str(error).partition(" - at `$")
        what = _TYPE.sub(_in_words, what)
        what += "; write it in quotes" if what.lower().endswith(_UNQUOTED) else ""
        field = path.rstrip("`").lstrip(".") or OBJECT
        if what.startswith(_NO_CHOICE):
            what = f"unknown value {what.removeprefix(_NO_CHOICE)}; write one of {', '.join(_choices(shape, field))}"
        raise Refused(Reason.INVALID, "wrong-type", field, what=f"{what[0].lower()}{what[1:]}") from None


def _choices(shape: type[View], field: str) -> list[str]:
    """Return the values that a shape accepts in a field, whose path is one of msgspec's."""
    kinds = [*_alternatives(inspect.type_info(shape))]
    for step in field.replace("[...]", "[]").replace("[", ".[").split("."):
        inner = [each for kind in kinds for each in _inside(kind, step)]
        kinds = [each for kind in inner for each in _alternatives(kind)]
    return [str(value) for each in kinds if isinstance(each, inspect.LiteralType) for value in each.values]


def _alternatives(kind: inspect.Type) -> tuple[inspect.Type, ...]:
    return kind.types if isinstance(kind, inspect.UnionType) else (kind,)


def _inside(kind: inspect.Type, step: str) -> Iterator[inspect.Type]:
    if isinstance(kind, inspect.StructType):
        yield from (field.type for field in kind.fields if field.encode_name == step)
    elif isinstance(kind, inspect.ListType | inspect.VarTupleType):
        yield kind.item_type
    elif isinstance(kind, inspect.DictType):
        yield kind.value_type


def _in_words(types: re.Match[str]) -> str:
    """Return the types in words. null is left out as the absent one, unless it is the value."""
    accepted = " or ".join(_WORDS.get(each, each) for each in types[2].removesuffix(" | null").split(" | "))
    return f"{types[1]} {accepted}"


def _without_nulls(tree: object) -> object:
    """Return the tree without null members, which the API server's decoder takes for absent."""
    if isinstance(tree, dict):
        return {key: _without_nulls(value) for key, value in tree.items() if value is not None}
    if isinstance(tree, list):
        return [_without_nulls(item) for item in tree]
    return tree


Tree = dict[str, Any]
"""An object, or a part of one, as its JSON."""

Found = tuple[tuple[str, ...], object]
"""The path, with the keys and indices for each `*`, and the value there."""


def at(holder: object, path: str) -> object:
    """Return the value at a dotted path of maps; None if there is none."""
    for step in steps(path):
        if not isinstance(holder, dict):
            return None
        holder = holder.get(step)
    return holder


def item_at(holder: object, place: Sequence[str]) -> object:
    """Return the value at a place, whose steps are keys of maps and indices of lists; None if there is none."""
    for step in place:
        holder = dict(_items(holder)).get(step)
    return holder


def with_at(holder: Tree, path: str, value: object) -> Tree:
    """Return the map with a value at a dotted path of maps, created if absent; the given map stays as it is."""
    step, _, rest = path.partition(".")
    inner = holder.get(step)
    return {**holder, step: with_at(inner if isinstance(inner, dict) else {}, rest, value) if rest else value}


def all_at(tree: object, path: str) -> Iterator[Found]:
    """Yield the values at a path in which `*` is each list item or map value; None if only the last step is missing."""
    found: list[Found] = [((), tree)]
    for step in steps(path):
        if step == "*":
            found = [((*taken, key), item) for taken, each in found for key, item in _items(each)]
        else:
            found = [((*taken, step), each.get(step)) for taken, each in found if isinstance(each, dict)]
    yield from found


def steps(path: str) -> list[str]:
    """Return the steps of a path; none for the empty one."""
    return path.split(".") if path else []


def mapped(found: object) -> Tree:
    """Return a map; an empty one for any other value."""
    return found if isinstance(found, dict) else {}


def listed(found: object) -> list[Any]:
    """Return a list; an empty one for any other value."""
    return found if isinstance(found, list) else []


def _items(tree: object) -> Iterator[tuple[str, object]]:
    if isinstance(tree, dict):
        yield from tree.items()
    elif isinstance(tree, list):
        yield from ((str(index), item) for index, item in enumerate(tree))
