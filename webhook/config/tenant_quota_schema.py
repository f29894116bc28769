"""What the API server refuses of a TenantQuota, told without one: by the CustomResourceDefinition's own schema."""

from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any

from webhook.config.yaml_text import trees
from webhook.objects.quantities import quantity
from webhook.objects.refusal import Refused
from webhook.objects.structural_schema import Rules, Schema, problems
from webhook.policy.quota.tenant_quotas import API_VERSION

Tree = Mapping[str, Any]

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
    return [*_of_metadata(tree["metadata"]), *problems(written, schema(), RULES)]


@cache
def schema() -> Schema:
    """The schema of a TenantQuota."""
    text = resources.files("webhook.config").joinpath("tenantquotas.gpu-tiers.dev.yaml").read_text("utf-8")
    (crd,) = trees(text)
    (version,) = crd["spec"]["versions"]  # type: ignore[index]
    found: Schema = version["schema"]["openAPIV3Schema"]
    return found


def _of_metadata(metadata: Tree) -> list[str]:
    written = {name: each for name, each in metadata.items() if name not in _WRITTEN_BY_THE_API_SERVER}
    named = {"name", "generateName"} & written.keys()
    return ([] if named else ["metadata.name: is required"]) + problems(written, _METADATA, {}, "metadata")


def _one_ceiling(spec: Tree) -> bool:
    return not ("maxTier" in spec and "allowedTiers" in spec)


def _default_is_allowed(spec: Tree) -> bool:
    return "defaultTier" not in spec or "allowedTiers" not in spec or spec["defaultTier"] in spec["allowedTiers"]


def _rows_are_allowed(spec: Tree) -> bool:
    named = [row["tier"] for row in spec.get("quotas", ()) if "tier" in row]
    return "allowedTiers" not in spec or all(tier in spec["allowedTiers"] for tier in named)


def _backstop_is_charged(spec: Tree) -> bool:
    return not (spec.get("backstop") == "ResourceQuota" and spec.get("quotaAuthority") in ("Kueue", "KAI"))


def _backstop_is_no_warning(spec: Tree) -> bool:
    return not (spec.get("backstop") == "ResourceQuota" and spec.get("onExceed") == "Warn")


def _values_fit(line: Tree) -> bool:
    return (line["operator"] in ("In", "NotIn")) == bool(line.get("values"))


def _rows_differ(rows: list[Tree]) -> bool:
    about = [(row.get("tier", ""), row.get("resourceFlavor", "")) for row in rows]
    return len(about) == len(set(about))


def _is_amount(gpus: int | str) -> bool:
    try:
        return quantity(gpus, "gpus") >= 0
    except Refused:
        return False


RULES: Rules = {
    "maxTier and allowedTiers say the same thing in two ways: set one of them": _one_ceiling,
    "defaultTier must be one of allowedTiers": _default_is_allowed,
    "quotas: a row names a tier that allowedTiers does not allow": _rows_are_allowed,
    "backstop: ResourceQuotas would refuse what quotaAuthority leaves to another system; leave one of them out": (
        _backstop_is_charged
    ),
    "backstop: ResourceQuotas would refuse what onExceed Warn lets run; leave one of them out": _backstop_is_no_warning,
    "In and NotIn need values; Exists and DoesNotExist take none": _values_fit,
    "two rows are for the same tier and resourceFlavor: keep one": _rows_differ,
    'must be a quantity of 0 or more, such as 6 or "0.5"': _is_amount,
}
"""The CEL rules of the schema by their messages."""
