"""Makes the list of values that the chart can't do without, with an example of each: its default."""

import json
from collections.abc import Iterator
from typing import Any

import yaml

from generators.tables import Schema
from generators.values import CHART

_HEAD = "# Made from values.yaml and values.schema.json by `make generate`; change those, not this file.\n"


def needed_values() -> str:
    """Return the file: path and default of each value, but not of empty texts, lists and maps, which may be missing."""
    schema = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))
    defaults = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
    return _HEAD + yaml.safe_dump(dict(_needed(schema["properties"], defaults, "")), sort_keys=False)


def _needed(properties: Schema, defaults: dict[str, Any], above: str) -> Iterator[tuple[str, object]]:
    for name, default in defaults.items():
        if isinstance(default, dict):
            if default and properties[name].get("properties"):
                yield from _needed(properties[name]["properties"], default, f"{above}{name}.")
        elif default != "" and not isinstance(default, list):
            yield above + name, default
