"""One ResourceQuota that we render: how it looks, whether it is ours and says what it should, and how it is written."""

from collections.abc import Mapping
from typing import Any

import msgspec

from webhook.kube.client import Client
from webhook.kube.errors import ApiError, Conflict, Forbidden, NotFound
from webhook.kube.paths import path
from webhook.objects.quantities import quantity
from webhook.objects.refusal import Refused
from webhook.objects.view import Tree
from webhook.policy.quota.tenant_quotas import API_VERSION, TENANT_QUOTA

LABELS = {"app.kubernetes.io/managed-by": "gpu-tiers", "app.kubernetes.io/component": "backstop"}
SELECTOR = ",".join(f"{key}={value}" for key, value in LABELS.items())


class Place(msgspec.Struct, frozen=True):
    """Where a ResourceQuota lies."""

    namespace: str
    name: str

    @property
    def path(self) -> str:
        return path("v1", "resourcequotas", self.namespace, self.name)

    def __str__(self) -> str:
        return f"ResourceQuota/{self.name} in {self.namespace}"


class RenderedFor(msgspec.Struct, frozen=True):
    """The TenantQuota that a ResourceQuota is rendered for."""

    name: str
    uid: str


def manifest(place: Place, owner: RenderedFor, spec: Mapping[str, Any]) -> Tree:
    reference = {"apiVersion": API_VERSION, "kind": TENANT_QUOTA.kind, "name": owner.name, "uid": owner.uid}
    metadata = {
        "name": place.name,
        "namespace": place.namespace,
        "labels": LABELS,
        "ownerReferences": [{**reference, "controller": True}],
    }
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": dict(spec)}


def place_of(tree: Tree) -> Place:
    return Place(tree["metadata"]["namespace"], tree["metadata"]["name"])


def rendered_for(tree: Tree) -> RenderedFor | None:
    """The TenantQuota that controls it; None where it is not ours."""
    for each in tree["metadata"].get("ownerReferences") or ():
        group = each["apiVersion"].partition("/")[0]
        if each.get("controller") and (group, each["kind"]) == (TENANT_QUOTA.group, TENANT_QUOTA.kind):
            return RenderedFor(each["name"], each["uid"])
    return None


async def problem_of_writing(client: Client, place: Place, there: Tree | None, wanted: Tree | None) -> str | None:
    """Bring what is stored into step; without `wanted` delete it. A sentence where it can't be done."""
    try:
        await _write(client, place, there, wanted)
    except NotFound:
        return None  # it is gone, or its namespace is
    except ApiError as error:
        return _sentence(place, error, is_new=there is None)
    return None


async def _write(client: Client, place: Place, there: Tree | None, wanted: Tree | None) -> None:
    if there is None and wanted is not None:
        await client.create(path("v1", "resourcequotas", place.namespace), wanted)
    elif there is not None and wanted is None:
        await client.delete(place.path, version=there["metadata"]["resourceVersion"])
    elif there is not None and wanted is not None and not _in_step(there, wanted):
        labels = {**(there["metadata"].get("labels") or {}), **LABELS}
        owners = wanted["metadata"]["ownerReferences"]
        metadata = {**there["metadata"], "labels": labels, "ownerReferences": owners}
        await client.replace(place.path, {**there, "metadata": metadata, "spec": wanted["spec"]})


_ENDING = "because it is being terminated"
"""Ends what the API server says of a namespace that goes away."""
_NO_RIGHT = " cannot "
"""Stands in what it says to whom RBAC does not let: User "…" cannot create resource "resourcequotas"."""


def _sentence(place: Place, error: ApiError, *, is_new: bool) -> str | None:
    if _ENDING in str(error):
        return None
    if isinstance(error, Forbidden) and _NO_RIGHT in str(error):
        return "gpu-tiers may not write ResourceQuotas; set the chart's value backstop.enabled to true"
    if isinstance(error, Conflict) and is_new:
        return f"{place} is somebody else's, so the backstop lacks it; delete it, or give it another name"
    return f"{place} is not in step: {error}"


def _in_step(there: Tree, wanted: Tree) -> bool:
    """Whether it is as it should be. The API server writes quantities in its own way: 1000 is stored as 1k."""
    asked, found = wanted["spec"], there.get("spec") or {}
    return (
        rendered_for(there) == rendered_for(wanted)
        and _numbers(found) == _numbers(asked)
        and {key: each for key, each in found.items() if key != "hard"}
        == {key: each for key, each in asked.items() if key != "hard"}
    )


def _numbers(spec: Tree) -> Mapping[str, object]:
    hard = spec.get("hard") or {}
    try:
        return {name: quantity(each, name) for name, each in hard.items()}
    except Refused:
        return hard
