"""Makes docs/values.md of the chart's schema and default values."""

import json
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import yaml

from generators.tables import Schema, accepted, code, page, table

CHART = Path(__file__).parents[2] / "charts" / "gpu-tiers"

_HEAD = """\
[Install](install.md) says which values matter. The schema refuses any other value. The fields below `policy` are those
of [the policy file](policy.md)."""
_PROBES = ("startupProbe", "readinessProbe", "livenessProbe")


def values() -> str:
    """Return the whole page: a table of all values."""
    source = "`charts/gpu-tiers/values.schema.json` and `values.yaml`"
    return page("The chart's values", source, _HEAD, table(("value", "default", "meaning"), _merged()))


def _merged() -> Iterator[tuple[str, str, str]]:
    """Yield the rows, one for each probe. What a value accepts is left out if its default shows it."""
    schema = _schema()
    for name, group in groupby(rows(), lambda row: row[0].strip("`").partition(".")[0]):
        if name in _PROBES:
            yield code(name), "", schema[name]["description"]
        else:
            yield from ((value, default, f"{_choices(accepts)}{meaning}") for value, accepts, default, meaning in group)


def _choices(accepts: str) -> str:
    """Return the choices or the bounds of a value as a sentence; "" for a type alone."""
    bounds = accepts.partition(", ")[2]
    if accepts.startswith("`"):
        return f"{accepts}. "
    return f"{bounds[:1].upper()}{bounds[1:]}. " if bounds and accepts != "true, false" else ""


def rows() -> Iterator[tuple[str, str, str, str]]:
    """Yield each value: its path, what it accepts, its default and its meaning."""
    defaults = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
    return _rows(_schema(), defaults, "")


def sections() -> dict[str, str]:
    """Return the description of each value of the highest level."""
    return {name: schema["description"].replace("<", "&lt;") for name, schema in _schema().items()}


def _schema() -> dict[str, Schema]:
    schema: dict[str, Schema] = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))["properties"]
    return schema


def _rows(properties: Schema, defaults: Any, above: str) -> Iterator[tuple[str, str, str, str]]:
    for name, schema in properties.items():
        default = defaults.get(name) if isinstance(defaults, dict) else None
        if schema.get("properties") and name != "policy":
            yield from _rows(schema["properties"], default or {}, f"{above}{name}.")
        else:
            yield code(above + name), accepted(schema), _default(default), f"{schema['description']}{_example(schema)}"


def _default(value: object) -> str:
    return "" if value in (None, "") else _written(value)


def _example(schema: Schema) -> str:
    """Return the first example of a value as a sentence; "" if the schema has none."""
    return f" Example: {_written(schema['examples'][0])}." if "examples" in schema else ""


def _written(value: object) -> str:
    return code(value if isinstance(value, str) else json.dumps(value))
