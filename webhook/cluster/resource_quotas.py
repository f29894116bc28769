"""What a ResourceQuota leaves for pods, read from the object."""

import msgspec

from webhook.objects.pods import Metadata
from webhook.objects.quantities import quantity
from webhook.objects.view import View
from webhook.policy.quota.native_quotas import PRIORITY_CLASS, REQUESTS, NativeQuota
from webhook.policy.values.tenants import Requirement

LOOKED_AT = {PRIORITY_CLASS, "NotTerminating", "NotBestEffort"}
"""A ResourceQuota of any other scope is passed over: it counts few pods with GPUs, or none. Most pods with GPUs have no
deadline and ask for CPU or memory, so the last two are taken to count them."""


class _Line(View, frozen=True):
    scope_name: str = ""
    operator: str = "Exists"
    values: tuple[str, ...] = ()


class _Selector(View, frozen=True):
    match_expressions: tuple[_Line, ...] = ()


class _Spec(View, frozen=True):
    hard: dict[str, str | int | float] = msgspec.field(default_factory=dict)
    scopes: tuple[str, ...] = ()
    scope_selector: _Selector = _Selector()


class _Status(View, frozen=True):
    hard: dict[str, str | int | float] = msgspec.field(default_factory=dict)
    used: dict[str, str | int | float] = msgspec.field(default_factory=dict)


class ResourceQuota(View, frozen=True):
    """A ResourceQuota."""

    metadata: Metadata = Metadata()
    spec: _Spec = _Spec()
    status: _Status = _Status()


def native_quota(found: ResourceQuota) -> NativeQuota | None:
    """What is left of it; None where its scopes are not looked at."""
    lines = (*(_Line(scope_name=each) for each in found.spec.scopes), *found.spec.scope_selector.match_expressions)
    if not {line.scope_name for line in lines} <= LOOKED_AT:
        return None
    classes = (line for line in lines if line.scope_name == PRIORITY_CLASS)
    hard, used = found.status.hard or found.spec.hard, found.status.used
    free = {
        name.removeprefix(REQUESTS): quantity(limit, f"hard.{name}") - quantity(used.get(name, 0), f"used.{name}")
        for name, limit in hard.items()
        if name.startswith(REQUESTS)
    }
    return NativeQuota(
        found.metadata.name, tuple(Requirement(PRIORITY_CLASS, line.operator, line.values) for line in classes), free
    )
