"""Makes docs/policy-reference.md of the model of the policy file."""

import json
from collections.abc import Iterator
from typing import Any

from generators.tables import Schema, accepted, code, page, table
from webhook.config.load import DEFAULT_PRESET
from webhook.config.model import PolicyFile
from webhook.policy.saves.node_signals import BUILT_IN

_HEAD = f"""\
[The policy](policy.md) explains the fields. The webhook refuses a file with a wrong field as a whole.

A field that is absent, or `tiers: []`, has the value of the preset (`preset`, or `{DEFAULT_PRESET}`), otherwise the
default below. A map is merged with the preset's map key by key. Any other value replaces the preset's: `rules: []`
means no rules. `null` is refused. Every preset has the fields that are *required*."""


_KUBERNETES = {
    "SelectorSection": "[label selector](https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/)",
    "SelectorLineSection": "",
    "TolerationSection": "[tolerations](https://kubernetes.io/docs/concepts/scheduling-eviction/taint-and-toleration/)",
}
"""Sections whose fields are those of Kubernetes, and what stands in place of a link to them."""


_SIGNALS = """\
What says that a node will end, the most urgent first. `nodeSignals` adds rows, changes them by their `id`, and leaves
some out with `ignore: true`. *Imminent*: within minutes; *Planned*: later; *Possible*: perhaps. A notice stands only
where the provider guarantees one."""


def policy_fields() -> str:
    """Return the whole page: the file, each section of it, and the node signals."""
    schema = PolicyFile.model_json_schema(by_alias=True)
    sections = schema["$defs"]
    parts: list[str] = ["## TierPolicy", _fields(schema, sections)]
    for name, section in sorted(sections.items()):
        if section["type"] == "object" and name not in _KUBERNETES:
            parts += [f"## {_title(name)}", section["description"], _fields(section, sections)]
    parts += ["## Node signals", _SIGNALS, table(("id", "on the Node", "urgency", "notice"), _signals())]
    return page("The policy file, field by field", "`webhook/config/model.py`", _HEAD, *parts)


def _signals() -> Iterator[tuple[str, ...]]:
    """Yield the rows of signals, in which the id links to the source."""
    for row in BUILT_IN:
        is_status = row.where == "Condition"
        value = row.value or ("True" if is_status else "")
        on = (
            f"{row.where.lower()} {code(row.key + (f'={value}' if value else ''))}"
            if row.key
            else "`spec.unschedulable`"
        )
        notice = f"{row.notice} s" if row.notice else ""
        yield f"[{code(row.id)}]({row.source})", on, row.urgency, notice


def _fields(section: Schema, sections: Schema) -> str:
    required = section.get("required", ())
    fields = {name: _with_choices(field, sections) for name, field in section["properties"].items()}
    return table(("field", "accepts", "default"), _rows(fields, required))


def _with_choices(field: Schema, sections: Schema) -> Schema:
    """Return the field with an enumeration's choices in place of its name, because an enumeration has no section."""
    choices = [sections[name] for name in [_section(field)] if name and sections[name]["type"] != "object"]
    return {**field, "anyOf": choices} if choices else field


def _rows(properties: Schema, required: list[str]) -> Iterator[tuple[str, str, str]]:
    for name, field in properties.items():
        default = "required" if name in required else _default(field)
        yield code(name), _accepted(field), default


def _accepted(field: Schema) -> str:
    section = _section(field) or _section(field.get("items", {}))
    if section:
        link = _KUBERNETES.get(section) or f"[{_title(section)}](#{_title(section).lower()})"
        return f"list of {link}" if "items" in field else link
    if "propertyNames" in field:
        return f"map from workload type to {'list of tiers' if 'items' in field['additionalProperties'] else 'tier'}"
    if field.get("type") == "object":
        inner = _section(field.get("additionalProperties", {}))
        if words := field.get("additionalProperties", {}).get("description"):
            return f"map from tier to {words}"
        return f"map from tier to [{_title(inner)}](#{_title(inner).lower()})" if inner else "map of text"
    return accepted(field)


def _section(field: Schema) -> str | None:
    for each in (field, *field.get("anyOf", ())):
        if "$ref" in each:
            return str(each["$ref"]).rpartition("/")[2]
    return None


def _title(section: str) -> str:
    return section.removesuffix("Section")


def _default(field: Schema) -> str:
    value: Any = field.get("default")
    if value in (None, "", [], {}) or isinstance(value, dict):
        return ""
    return code(value if isinstance(value, str) else json.dumps(value))
