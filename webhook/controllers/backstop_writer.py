"""Writes the ResourceQuotas of a backstop, which the API server itself enforces.

A ResourceQuota is ours if it has our labels and its controller is a TenantQuota. Any other one is never changed,
even under a name of ours. When a TenantQuota is deleted, Kubernetes' garbage collection removes its ResourceQuotas.
"""

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import msgspec

from webhook.controllers.event_writer import EventWriter, Regarding
from webhook.controllers.rounds import Rounds
from webhook.kube.client import Client, listed_objects, path
from webhook.kube.errors import ApiError, Conflict, Forbidden, NotFound
from webhook.objects.quantities import quantity
from webhook.objects.refusal import Refused
from webhook.objects.view import Tree
from webhook.policy.quota.native_quotas import backstop
from webhook.policy.quota.tenant_quotas import TENANT_QUOTA
from webhook.policy.values.facts import Namespace
from webhook.policy.values.tier_policy import TierPolicy

LABELS = {"app.kubernetes.io/managed-by": "gpu-tiers", "app.kubernetes.io/component": "backstop"}
SELECTOR = ",".join(f"{key}={value}" for key, value in LABELS.items())


class Place(msgspec.Struct, frozen=True):
    """The namespace and name of a ResourceQuota."""

    namespace: str
    name: str

    @property
    def path(self) -> str:
        return path("v1", "resourcequotas", self.namespace, self.name)

    def __str__(self) -> str:
        return f"ResourceQuota/{self.name} in {self.namespace}"


def manifest(place: Place, owner: Regarding, spec: Mapping[str, Any]) -> Tree:
    """Return the ResourceQuota to write, with its TenantQuota as the controller."""
    owners = [{**owner.reference, "controller": True}]
    metadata = {"name": place.name, "namespace": place.namespace, "labels": LABELS, "ownerReferences": owners}
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": dict(spec)}


def rendered_for(tree: Tree) -> Regarding | None:
    """Return the TenantQuota that controls a ResourceQuota; None if no TenantQuota does."""
    for each in tree["metadata"].get("ownerReferences") or ():
        group = each["apiVersion"].partition("/")[0]
        if each.get("controller") and (group, each["kind"]) == (TENANT_QUOTA.group, TENANT_QUOTA.kind):
            return Regarding.tenant_quota(each["name"], each["uid"])
    return None


async def problem_of_writing(client: Client, place: Place, there: Tree | None, wanted: Tree | None) -> str | None:
    """Create, update or, without `wanted`, delete a ResourceQuota. Return a sentence if that fails, or None."""
    try:
        if there is None and wanted is not None:
            await client.create(path("v1", "resourcequotas", place.namespace), wanted)
        elif there is not None and wanted is None:
            await client.delete(place.path, version=there["metadata"]["resourceVersion"])
        elif there is not None and wanted is not None and not _in_step(there, wanted):
            labels = {**(there["metadata"].get("labels") or {}), **LABELS}
            owners = wanted["metadata"]["ownerReferences"]
            metadata = {**there["metadata"], "labels": labels, "ownerReferences": owners}
            await client.replace(place.path, {**there, "metadata": metadata, "spec": wanted["spec"]})
    except NotFound:
        return None  # it is gone, or its namespace is
    except ApiError as error:
        if "because it is being terminated" in str(error):  # its namespace is being deleted
            return None
        # RBAC forbids it in these words: User "…" cannot create resource "resourcequotas".
        if isinstance(error, Forbidden) and " cannot " in str(error):
            return "gpu-tiers may not write ResourceQuotas; set the chart's value backstop.enabled to true"
        if isinstance(error, Conflict) and there is None:
            return f"{place} is somebody else's, so the backstop lacks it; delete it, or give it another name"
        return f"{place} is not in step: {error}"
    return None


def _in_step(there: Tree, wanted: Tree) -> bool:
    """Tell whether it is as wanted. Quantities are compared as numbers, because the API server stores 1000 as 1k."""
    specs: list[Tree] = []
    for spec in (wanted["spec"], there.get("spec") or {}):
        hard = spec.get("hard") or {}
        with suppress(Refused):
            hard = {name: quantity(each, name) for name, each in hard.items()}
        specs.append({**spec, "hard": hard})
    return rendered_for(there) == rendered_for(wanted) and specs[0] == specs[1]


log = logging.getLogger(__name__)

REASON = "BackstopNotRendered"


@dataclass(eq=False)
class BackstopWriter(Rounds):
    """Writes the ResourceQuotas, only in namespaces where quotas are `enforced`."""

    interval = 1.0
    recheck = 10.0
    """Somebody may have changed a ResourceQuota, or a write may work now."""

    client: Client
    policy: Callable[[], TierPolicy]
    enforced: Callable[[Namespace], bool]
    events: EventWriter
    _done: Mapping[Place, Tree] | None = None
    _stale_at: float = 0.0
    _failing: set[tuple[Regarding | None, str]] = field(default_factory=set)

    async def _round(self) -> None:
        """Update all ResourceQuotas, unless the wanted ones are unchanged, and either none or recently updated."""
        if not self.leading():
            return
        wanted = dict(self._wanted())
        at_rest = not wanted and not self._failing
        if wanted == self._done and (at_rest or time.monotonic() < self._stale_at):
            return
        before, self._failing = self._failing, set()
        try:
            stored = await self._rendered()
            for place in (*(stored.keys() - wanted.keys()), *wanted):
                there, tree = stored.get(place), wanted.get(place)
                problem = await problem_of_writing(self.client, place, there, tree)
                if problem is not None:
                    self._failing.add((rendered_for(tree or there or {}), problem))
        except ApiError as error:
            self._failing.add((None, f"ResourceQuotas can't be listed: {error}"))
        self._done = wanted
        self._stale_at = time.monotonic() + self.recheck
        for owner, problem in self._failing:
            if (owner, problem) not in before:
                log.warning("backstop not rendered", {"tenant": owner.name if owner else "", "error": problem})
            if owner is not None:  # repeated in each round, because an event expires after an hour
                self.events.add(owner, REASON, problem)

    def _wanted(self) -> Iterator[tuple[Place, Tree]]:
        policy = self.policy()
        specs = {
            each.name: (Regarding.tenant_quota(each.name, each.uid), backstop(each.tenant, policy))
            for each in self.cluster.tenant_quotas()
            if each.tenant and each.tenant.backstop
        }
        for namespace in self.cluster.namespaces() if specs else ():
            found = specs.get(self.cluster.tenant_name(namespace.name) or "")
            if found is not None and self.enforced(namespace):
                owner, quotas = found
                for name, spec in quotas.items():
                    place = Place(namespace.name, name)
                    yield place, manifest(place, owner, spec)

    async def _rendered(self) -> dict[Place, Tree]:
        """Return our stored ResourceQuotas, without those of broken TenantQuotas, which must stay unchanged."""
        broken = {each.name for each in self.cluster.tenant_quotas() if each.tenant is None}
        found: dict[Place, Tree] = {}
        pages = self.client.list_pages(path("v1", "resourcequotas"), {"labelSelector": SELECTOR})
        async for raw in listed_objects(pages):
            tree = msgspec.json.decode(raw)
            owner = rendered_for(tree)
            if owner is not None and owner.name not in broken:
                found[Place(tree["metadata"]["namespace"], tree["metadata"]["name"])] = tree
        return found
