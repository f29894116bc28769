"""Writes Markdown tables and says in words what a JSON schema accepts; knows nothing of what it describes."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Schema = Mapping[str, Any]
_PLURAL = {"string": "strings", "object": "objects", "number": "numbers", "integer": "whole numbers"}
_SINGULAR = {"string": "text", "object": "map", "number": "number", "integer": "whole number", "boolean": "true, false"}


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table; a bar or an angle within a cell is escaped."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(_cell(text) for text in line) + " |" for line in lines)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")


def code(text: object) -> str:
    """Text as code; "" where there is none."""
    return f"`{text}`" if str(text) else ""


def page(title: str, source: str, *parts: str) -> str:
    """A whole page that says what it is made from."""
    note = f"Made from {source} by `make generate`; change that, not this page."
    return "\n\n".join((f"# {title}", *parts[:1], note, *parts[1:])) + "\n"


def accepted(schema: Schema) -> str:
    """What a schema accepts, in words: its choices, its type and its bounds."""
    if "const" in schema:
        return code(schema["const"])
    if "enum" in schema:
        return ", ".join(code(choice) for choice in schema["enum"])
    if "anyOf" in schema:
        return " or ".join(accepted(each) for each in schema["anyOf"] if each.get("type") != "null")
    kind = schema.get("type", "anything")
    if isinstance(kind, list):
        return " or ".join(_SINGULAR[each] for each in kind)
    if kind == "array":
        return f"list of {_PLURAL.get(schema.get('items', {}).get('type', ''), 'items')}"
    return f"{_SINGULAR.get(kind, kind)}{_bounds(schema)}"


def _bounds(schema: Schema) -> str:
    lowest = [f"above {schema['exclusiveMinimum']:g}"] if "exclusiveMinimum" in schema else []
    lowest += [f"from {_number(schema['minimum'])}"] if "minimum" in schema else []
    highest = [f"to {_number(schema['maximum'])}"] if "maximum" in schema else []
    longest = [f"{schema['maxLength']} characters at most"] if "maxLength" in schema else []
    said = " ".join((*lowest, *highest, *longest))
    return f", {said}" if said else ""


def _number(value: float) -> str:
    return f"{value:,.0f}"
