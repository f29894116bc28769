"""What the API server refuses of a TenantQuota, told without one: by the CustomResourceDefinition's own schema.

Only the keywords that structural schemas have are read. Rules in CEL are not run: each has a function of its own here.
Source: https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#validation
"""

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from importlib import resources
from typing import Any

from webhook.config.yaml_text import trees
from webhook.objects.quantities import quantity
from webhook.objects.refusal import Refused, shown
from webhook.objects.view import Tree
from webhook.policy.quota.tenant_quotas import API_VERSION

Schema = Mapping[str, Any]
Rules = Mapping[str, Callable[[Any], bool]]
"""What an `x-kubernetes-validations` with this message asks of the value that it stands at."""

_LABELS = {"type": "object", "additionalProperties": {"type": "string"}}
_NAME = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
_METADATA: Schema = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 253, "pattern": _NAME},
        "generateName": {"type": "string"},
        "labels": _LABELS,
        "annotations": _LABELS,
    },
}
"""What a person writes of an object's metadata."""
_WRITTEN_BY_THE_API_SERVER = frozenset(
    {
        "creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp", "finalizers", "generation",
        "managedFields", "namespace", "ownerReferences", "resourceVersion", "selfLink", "uid",
    }
)  # fmt: skip
"""Left alone: a manifest may come from `kubectl get -o yaml`."""


def tenant_quota_problems(tree: Tree) -> list[str]:
    """Every reason to refuse a TenantQuota, with the field's path; its status is not looked at."""
    if tree["apiVersion"] != API_VERSION:
        return [f'apiVersion: "{tree["apiVersion"]}" is not served; write {API_VERSION}']
    written = {name: each for name, each in tree.items() if name != "status"}
    return [*_of_metadata(tree["metadata"]), *problems(written, tenant_quota_schema(), RULES)]


@cache
def tenant_quota_schema() -> Schema:
    text = resources.files("webhook.config").joinpath("tenantquotas.gpu-tiers.dev.yaml").read_text("utf-8")
    (crd,) = trees(text)
    (version,) = crd["spec"]["versions"]  # type: ignore[index]
    found: Schema = version["schema"]["openAPIV3Schema"]
    return found


def _of_metadata(metadata: Tree) -> list[str]:
    written = {name: each for name, each in metadata.items() if name not in _WRITTEN_BY_THE_API_SERVER}
    named = {"name", "generateName"} & written.keys()
    return ([] if named else ["metadata.name: is required"]) + problems(written, _METADATA, {}, "metadata")


def _rows_are_allowed(spec: Tree) -> bool:
    named = [row["tier"] for row in spec.get("quotas", ()) if "tier" in row]
    return "allowedTiers" not in spec or all(tier in spec["allowedTiers"] for tier in named)


def _holds(spec: Tree) -> bool:
    """Whether it has pods that wait, by itself or by a row."""
    return spec.get("onExceed") == "Hold" or any(row.get("onExceed") == "Hold" for row in spec.get("quotas", ()))


def _rows_differ(rows: list[Tree]) -> bool:
    about = [(row.get("tier", ""), row.get("resourceFlavor", "")) for row in rows]
    return len(about) == len(set(about))


def _is_amount(gpus: int | str) -> bool:
    try:
        return quantity(gpus, "gpus") >= 0
    except Refused:
        return False


RULES: Rules = {
    "maxTier and allowedTiers say the same thing in two ways: set one of them": lambda spec: (
        not ("maxTier" in spec and "allowedTiers" in spec)
    ),
    "defaultTier must be one of allowedTiers": lambda spec: (
        "defaultTier" not in spec or "allowedTiers" not in spec or spec["defaultTier"] in spec["allowedTiers"]
    ),
    "quotas: a row names a tier that allowedTiers does not allow": _rows_are_allowed,
    "demoteTo is for pods that are demoted; write onExceed: Demote, or leave it out": lambda spec: (
        "demoteTo" not in spec or spec.get("onExceed") == "Demote"
    ),
    "demoteTo: names a tier that allowedTiers does not allow": lambda spec: (
        "allowedTiers" not in spec or set(spec.get("demoteTo", ())) <= set(spec["allowedTiers"])
    ),
    "a tier stands there twice: keep one": lambda names: len(names) == len(set(names)),
    "backstop: ResourceQuotas would refuse what quotaAuthority leaves to another system; leave one of them out": (
        lambda spec: not (spec.get("backstop") == "ResourceQuota" and spec.get("quotaAuthority") in ("Kueue", "KAI"))
    ),
    "backstop: ResourceQuotas would refuse what onExceed Warn lets run; leave one of them out": lambda spec: (
        not (spec.get("backstop") == "ResourceQuota" and spec.get("onExceed") == "Warn")
    ),
    "backstop: ResourceQuotas would refuse what onExceed Hold lets wait; leave one of them out": lambda spec: (
        not (spec.get("backstop") == "ResourceQuota" and _holds(spec))
    ),
    "onExceed: Hold would let pods wait here that quotaAuthority lets wait in another system; leave one of them out": (
        lambda spec: not (_holds(spec) and spec.get("quotaAuthority") in ("Kueue", "KAI"))
    ),
    "holdOrder and reserveSeconds are for pods that wait; write onExceed: Hold, or leave them out": lambda spec: (
        _holds(spec) or not {"holdOrder", "reserveSeconds"} & spec.keys()
    ),
    "quotas: a row's onExceed Hold goes with Deny or Hold of the tenant; above its other rows pods would run": (
        lambda spec: not (spec.get("onExceed") in ("Demote", "Warn") and _holds(spec))
    ),
    "reserveSeconds: holdOrder BestEffort reserves nothing; leave one of them out": lambda spec: (
        "reserveSeconds" not in spec or spec.get("holdOrder") != "BestEffort"
    ),
    "In and NotIn need values; Exists and DoesNotExist take none": lambda line: (
        (line["operator"] in ("In", "NotIn")) == bool(line.get("values"))
    ),
    "two rows are for the same tier and resourceFlavor: keep one": _rows_differ,
    'must be a quantity of 0 or more, such as 6 or "0.5"': _is_amount,
}
"""The CEL rules of the schema by their messages."""


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
    if isinstance(value, int) and value < schema.get("minimum", value):
        yield f"{path}: {_quoted(value)} should be {schema['minimum']} or more"
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
