"""Reads a cluster for a command, part by part; parts that the user may not read are left out, and noted."""

from collections.abc import AsyncIterator, Awaitable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import TypeVar

from msgspec import structs

from webhook.cli.cluster.target import OF_A_VERDICT, RIGHTS, role_for, unknown_without
from webhook.cli.manifests.documents import BadInput
from webhook.cli.progress import Steps
from webhook.cluster.device_class_informer import device_classes
from webhook.cluster.listed import listed_trees, plugins_by_node, resource_slices, supply_of
from webhook.cluster.live import LiveLookups, live_lookups
from webhook.kube.client import Client, path
from webhook.kube.discovery import server_version
from webhook.kube.errors import Forbidden, NotFound
from webhook.objects.pods import Named
from webhook.objects.view import Tree, view
from webhook.policy.values.facts import Namespace, namespace_of
from webhook.policy.values.gpu_supply import EvictionScope, GpuSupply, evicts_for_devices, resources_of_classes
from webhook.policy.values.tier_policy import TierPolicy
from webhook.report.lint.snapshot import Part

T = TypeVar("T")


@dataclass(frozen=True)
class ClusterReader:
    """Reads a cluster. `unread` has the right that each part needs that was not read: "list nodes".

    `lacking` has what other parts need, such as "a policy that can be read". `unknown` are sentences for the user on
    what is unknown without these. `roles` have the rights.
    """

    client: Client
    policy: TierPolicy
    steps: Steps
    lookups: LiveLookups
    unread: dict[Part, str] = field(default_factory=dict)
    lacking: dict[Part, str] = field(default_factory=dict)
    unknown: list[str] = field(default_factory=list)
    roles: list[str] = field(default_factory=list)

    @property
    def needs(self) -> dict[Part, str]:
        """Return what each unknown part needs."""
        return {part: f"the right to {right}" for part, right in self.unread.items()} | self.lacking

    @property
    def sure(self) -> bool:
        """Tell whether everything was read that a verdict needs."""
        return not OF_A_VERDICT & self.unread.keys()

    def missing(self, of_a_verdict: str = "") -> tuple[str, ...]:
        """Return what is unknown, with `of_a_verdict` if the verdict may differ, and then the roles."""
        needs = [right for part, right in self.unread.items() if part in OF_A_VERDICT]
        verdict = (unknown_without(of_a_verdict, *needs),) if needs and of_a_verdict else ()
        return (*verdict, *dict.fromkeys((*self.unknown, *self.roles)))

    async def part(self, part: Part, ask: Awaitable[T], otherwise: T, lost: str = "") -> T:
        """Return a part of the cluster, or `otherwise` and note that `lost` is unknown. Raises ApiError."""
        self.steps.begin(f"reading {part.replace('_', ' ')}")
        try:
            return await ask
        except Forbidden as error:
            self.lacks(part, RIGHTS[part], error, lost)
            return otherwise

    def lacks(self, part: Part, right: str, refused: Forbidden, lost: str = "") -> None:
        self.unread[part] = right
        self.roles.append(role_for(refused))
        if lost:
            self.unknown.append(unknown_without(lost, right))

    async def objects(
        self, plural: str, namespace: str, where: str, lost: str, params: dict[str, str] | None = None
    ) -> list[Tree] | None:
        """Return all objects of a list; None if the user may not list them, and then `lost` is unknown."""
        try:
            return await listed_trees(self.client, where, params)
        except Forbidden as error:
            self.unknown.append(unknown_without(lost, f"list {plural} in {namespace}"))
            self.roles.append(role_for(error))
            return None

    async def eviction(self) -> EvictionScope:
        """Return what kube-scheduler evicts pods for. Nodes are read only if a DeviceClass serves a resource."""
        classes = self.policy.classes
        if not classes:
            return EvictionScope()
        version = await self.part("version", server_version(self.client), (0, 0))
        nodes: dict[str, frozenset[str]] | None = None
        if resources_of_classes(classes.values()):
            lost = "whether its tier evicts anybody for its GPUs"
            nodes = await self.part("nodes", plugins_by_node(self.client), None, lost)
        known = EvictionScope(None, evicts_for_devices(version))
        return known if nodes is None else supply_of(nodes, (), version).scope

    async def supply(self) -> GpuSupply:
        """Return how each node serves GPUs, as far as the user may read it; no node without a DeviceClass."""
        if not self.policy.classes:
            return GpuSupply()
        lost = "on which nodes tiers evict nobody, because GPUs come by DRA there,"
        slices = await self.part("slices", resource_slices(self.client), (), lost)
        nodes = await self.part("nodes", plugins_by_node(self.client), {}, lost)
        return supply_of(nodes, slices, await self.part("version", server_version(self.client), (0, 0)))

    async def home(self, name: str, otherwise: Mapping[str, str]) -> Namespace:
        """Return a namespace; `otherwise` are its labels if it can't be read. Raises ApiError, BadInput without it."""
        try:
            where = path("v1", "namespaces", name=name)
            found = await self.part("home", self.client.get(where), {"metadata": {"labels": otherwise}})
        except NotFound:
            raise BadInput(f"there is no namespace {name}") from None
        return structs.replace(namespace_of(view(found, Named).metadata), name=name)


@asynccontextmanager
async def cluster_reader(client: Client, policy: TierPolicy) -> AsyncIterator[ClusterReader]:
    """Make a reader that shows its progress. Its policy has the cluster's DeviceClasses. Raises ApiError."""
    async with live_lookups(client) as lookups:
        with Steps() as steps:
            reader = ClusterReader(client, policy, steps, lookups)
            classes = await reader.part("device_classes", device_classes(client), {})
            yield replace(reader, policy=structs.replace(policy, classes=classes))
