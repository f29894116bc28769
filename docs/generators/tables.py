"""Writes Markdown: tables, bullets, pages, and in words what a JSON schema accepts."""

import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Schema = Mapping[str, Any]
_PLURAL = {"string": "strings", "object": "objects", "number": "numbers", "integer": "whole numbers"}
_SINGULAR = {"string": "text", "object": "map", "number": "number", "integer": "whole number", "boolean": "true, false"}


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table; `|` and `<` within a cell are escaped."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(_cell(text) for text in line) + " |" for line in lines)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")


def code(text: object) -> str:
    """Return text as code, or "" if there is none."""
    return f"`{text}`" if str(text) else ""


def wrapped(text: str, first: str = "", rest: str = "") -> str:
    """Return text in lines of at most 110 characters, indented by `first` and `rest`; a longer word stands alone."""
    return textwrap.fill(
        text, 110, initial_indent=first, subsequent_indent=rest, break_long_words=False, break_on_hyphens=False
    )


def words(phrases: str) -> str:
    """Return phrases, separated by commas, in lines that break only after a comma."""
    return wrapped(phrases.replace(" ", "\u00a0").replace(",\u00a0", ", ")).replace("\u00a0", " ")


def bullet(text: str, depth: int = 0) -> str:
    """An item of a list."""
    indent = "  " * depth
    return wrapped(text, f"{indent}- ", f"{indent}  ")


def either(names: Iterable[str]) -> str:
    """Names as a choice: a, b or c."""
    *most, last = names
    return f"{', '.join(most)} or {last}" if most else last


def page(title: str, source: str, *parts: str) -> str:
    """Return a whole page that names its source."""
    note = f"Made from {source} by `make generate`; change that, not this page."
    return "\n\n".join((f"# {title}", *parts[:1], note, *parts[1:])) + "\n"


def filled(mark: str, text: str, page: str) -> str:
    """Return a page with a new text between the comments `mark` and `/mark`; AssertionError if not there once."""
    place = re.compile(rf"(?<=<!-- {mark} -->\n).*?(?=<!-- /{mark} -->)", re.DOTALL)
    changed, times = place.subn(lambda _: f"\n{text}\n\n", page)
    assert times == 1  # noqa: S101
    return changed


def accepted(schema: Schema) -> str:
    """Return in words what a schema accepts: choices, type and bounds."""
    if "const" in schema:
        return code(schema["const"])
    if "enum" in schema:
        choices = (str(each).lower() if isinstance(each, bool) else each for each in schema["enum"])
        return ", ".join(code(choice) for choice in choices if choice != "")
    if "anyOf" in schema:
        return " or ".join(accepted(each) for each in schema["anyOf"] if each.get("type") != "null")
    kind = schema.get("type", "anything")
    if isinstance(kind, list):
        return " or ".join(_SINGULAR[each] for each in kind)
    if kind == "array":
        each = schema.get("items", {}).get("type", "")
        return (
            f"list of {' or '.join(_PLURAL.get(one, 'items') for one in ([each] if isinstance(each, str) else each))}"
        )
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
