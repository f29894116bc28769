"""Reads the fields that decisions need out of an object's JSON.

Absent and null mean the same in Kubernetes' JSON; a wrong type is refused with its path.
"""

import re
from typing import TypeVar

import msgspec

from webhook.objects.refusal import Refused


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
"""What a person calls the types of JSON."""
_TYPE = re.compile(r"(xpected|got) `([a-z]+(?: \| [a-z]+)*)`")
_UNQUOTED = tuple(f"expected text, got {_WORDS[each]}" for each in ("int", "bool", "float"))
"""What YAML makes of `gpu-tiers.dev/checkpoint-timeout: 300` without quotes."""


def read(raw: bytes | msgspec.Raw, shape: type[V]) -> V:
    """An object's view from JSON bytes. Raises Refused with the field's path on a wrong type."""
    try:
        return msgspec.json.decode(raw, type=shape)
    except msgspec.ValidationError:
        return _view_without_nulls(msgspec.json.decode(raw), shape)


def view(tree: object, shape: type[V]) -> V:
    """An object's view from decoded JSON. Raises Refused with the field's path on a wrong type."""
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
        raise Refused(f"{path.rstrip('`').lstrip('.') or 'object'}: {what[0].lower()}{what[1:]}") from None


def _in_words(types: re.Match[str]) -> str:
    """The types, of which null is the absent one; alone it is what was given."""
    told = " or ".join(_WORDS.get(each, each) for each in types[2].removesuffix(" | null").split(" | "))
    return f"{types[1]} {told}"


def _without_nulls(tree: object) -> object:
    """The same tree where a null member is an absent member, as the API server's decoder has it."""
    if isinstance(tree, dict):
        return {key: _without_nulls(value) for key, value in tree.items() if value is not None}
    if isinstance(tree, list):
        return [_without_nulls(item) for item in tree]
    return tree
