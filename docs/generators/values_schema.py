"""Writes the fields of a TenantQuota into the schema of the chart's values: helm refuses what the CRD refuses."""

import json
from typing import Any

from generators.tables import Schema
from generators.values import CHART
from webhook.config.tenant_quota_schema import tenant_quota_schema

_GPUS: Schema = {
    "type": ["integer", "string"],
    "minimum": 0,
    "pattern": r"^\+?([0-9]+\.?[0-9]*|\.[0-9]+)([numkMGTPE]|[KMGTPE]i|[eE][0-9]+)?$",
    "maxLength": 32,
}
"""A number of GPUs: the CRD says it by a rule of its own (CEL), which helm does not know."""
_UNKNOWN_TO_HELM = ("x-kubernetes-", "default")


def values_schema() -> str:
    """Return the whole file as it is, except for the TenantQuota's spec, which is made from the CRD."""
    found = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))
    fields = found["properties"]["tenants"]["items"]["properties"]
    fields["spec"] = {
        **_plain(tenant_quota_schema()["properties"]["spec"]),
        "description": fields["spec"]["description"],
    }
    return json.dumps(found, indent=2) + "\n"


def _plain(field: Schema) -> Schema:
    """Return a field without the keys that only the API server reads. Unknown fields are refused."""
    if field.get("x-kubernetes-int-or-string"):
        return {**_GPUS, "description": field["description"]}
    plain: dict[str, Any] = {name: each for name, each in field.items() if not name.startswith(_UNKNOWN_TO_HELM)}
    if "properties" in plain:
        plain["properties"] = {name: _plain(each) for name, each in plain["properties"].items()}
        plain["additionalProperties"] = False
    if "items" in plain:
        plain["items"] = {"description": "One of them.", **_plain(plain["items"])}
    return plain
