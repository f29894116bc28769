"""Makes docs/tenantquota-reference.md of the schema of the CRD."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from generators.tables import Schema, accepted, bullet, code, page, table

CRD = Path(__file__).resolve().parents[2] / "charts" / "gpu-tiers" / "crds" / "tenantquotas.gpu-tiers.dev.yaml"

_HEAD = """\
[Quotas](quota.md) explains the fields; `kubectl explain tenantquota.spec` says the same as this page. The API server
refuses unknown fields."""


def tenant_fields() -> str:
    """Return the whole page: the fields of spec and status, and what else the API server refuses."""
    version = yaml.safe_load(CRD.read_text(encoding="utf-8"))["spec"]["versions"][0]
    schema = version["schema"]["openAPIV3Schema"]["properties"]
    rules = "\n".join(bullet(_sentence(rule)) for rule in _rules(schema["spec"]))
    head = ("field", "accepts", "default", "meaning")
    return page(
        "TenantQuota, field by field",
        "`charts/gpu-tiers/crds/tenantquotas.gpu-tiers.dev.yaml`",
        _HEAD,
        f"`apiVersion: gpu-tiers.dev/{version['name']}`, `kind: TenantQuota`, cluster-scoped; short `kubectl get tq`.",
        "## spec",
        table(head, _rows(schema["spec"], "")),
        "The API server also refuses these, with the same words:",
        rules,
        "## status",
        "Written by gpu-tiers alone; what others write there is repaired.",
        table(("field", "meaning"), ((name, text) for name, _, _, text in _rows(schema["status"], ""))),
    )


def _rows(schema: Schema, above: str) -> Iterator[tuple[str, str, str, str]]:
    """Yield a row for each field, followed by the fields in it unless they are those of Kubernetes."""
    required = schema.get("required", ())
    for name, field in schema.get("properties", {}).items():
        inner = field.get("items", field)
        path = f"{above}{name}{'[]' if 'items' in field else ''}"
        default = "required" if name in required else code(field.get("default", ""))
        yield code(path), _accepted(field), default, field.get("description", inner.get("description", ""))
        if name not in ("conditions", "namespaceSelector"):  # their fields are those of Kubernetes
            yield from _rows(inner, f"{path}.")


def _accepted(field: Schema) -> str:
    if field.get("x-kubernetes-int-or-string"):
        return "whole number, or a quantity in quotes"
    if "additionalProperties" in field:
        return "map of text"
    return accepted(field)


def _rules(schema: Schema) -> Iterator[dict[str, Any]]:
    """Yield the CEL rules of an object and of all objects in it, in the order of its fields."""
    yield from schema.get("x-kubernetes-validations", ())
    for field in (*schema.get("properties", {}).values(), *([schema["items"]] if "items" in schema else [])):
        yield from _rules(field)


def _sentence(rule: dict[str, Any]) -> str:
    return str(rule["message"])
