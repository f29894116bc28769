"""Reads a cluster for a command, part by part; parts that the user may not read are left out, and noted."""

from collections.abc import AsyncIterator, Awaitable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Self, TypeVar

from msgspec import structs

from webhook.cli.cluster.target import ASK_FOR_CLUSTER_READER, OF_A_VERDICT, RIGHTS, role_for, unknown_without
from webhook.cli.manifests.documents import BadInput
from webhook.cli.progress import Steps
from webhook.cluster.device_class_informer import device_classes
from webhook.cluster.listed import dra_objects, listed_trees, plugins_by_node, supply_of
from webhook.cluster.live import LiveLookups, live_lookups
from webhook.kube.client import Client, path
from webhook.kube.discovery import server_version
from webhook.kube.errors import Forbidden, NotFound
from webhook.objects.pods import Named
from webhook.objects.view import Tree, view
from webhook.policy.devices import ResourceSlice
from webhook.policy.values.facts import Namespace, namespace_of
from webhook.policy.values.gpu_supply import EvictionScope, GpuSupply, evicts_for_devices, resources_of_classes
from webhook.policy.values.tier_policy import TierPolicy
from webhook.report.lint.snapshot import Part

T = TypeVar("T")


@dataclass(frozen=True)
class ClusterReader:
    """Reads a cluster. `unread` has the missing right of each part that the user may not read, such as "list nodes".

    `lacking` has what other unread parts need, such as "a policy that can be read". `roles` has the advice how to get
    the right, by part. `unknown` has the sentences on what is unknown, each with that advice.
    """

    client: Client
    policy: TierPolicy
    steps: Steps
    lookups: LiveLookups
    unread: dict[Part, str] = field(default_factory=dict)
    lacking: dict[Part, str] = field(default_factory=dict)
    roles: dict[Part, str] = field(default_factory=dict)
    unknown: dict[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def needs(self) -> dict[Part, str]:
        """Return what each unread part needs: a right, or something else."""
        return {part: f"the right to {right}" for part, right in self.unread.items()} | self.lacking

    @property
    def sure(self) -> bool:
        """Tell whether the user may read everything that a verdict needs."""
        return not OF_A_VERDICT & self.unread.keys()

    def missing(self, command: str = "") -> tuple[str, ...]:
        """Return the sentences on what is unknown, and then how to get the roles.

        A researcher, who asks about one object, can't get the role that reads all namespaces. So with a `command` the
        advice is that the platform team runs it.
        """
        roles = dict.fromkeys(role for roles in self.unknown.values() for role in roles)
        ask = f"Your platform team may read it; ask them to run: gpu-tiers {command}"
        return (
            *self.unknown,
            *dict.fromkeys(ask if command and each == ASK_FOR_CLUSTER_READER else each for each in roles),
        )

    def without(self, lost: str, *parts: Part) -> None:
        """Note that `lost` is unknown if the user may not read one of these parts."""
        if needed := [part for part in self.unread if part in parts]:
            sentence = unknown_without(lost, *(self.unread[part] for part in needed))
            self.unknown[sentence] = tuple(self.roles[part] for part in needed)

    async def part(self, part: Part, ask: Awaitable[T], otherwise: T, lost: str = "") -> T:
        """Return the part that `ask` reads. Without the right, return `otherwise` and note that `lost` is unknown.

        Raises ApiError for any other failure.
        """
        self.steps.begin(f"reading {part.replace('_', ' ')}")
        try:
            return await ask
        except Forbidden as error:
            # Of a part that takes several rights, report the one that was refused.
            self.lacks(part, RIGHTS.get(part) or f"list {error.path.rpartition('/')[2]}", error, lost)
            return otherwise

    def lacks(self, part: Part, right: str, refused: Forbidden, lost: str = "") -> None:
        self.unread[part], self.roles[part] = right, role_for(refused)
        if lost:
            self.without(lost, part)

    async def objects(
        self, plural: str, namespace: str, where: str, lost: str, params: dict[str, str] | None = None
    ) -> list[Tree] | None:
        """Return all objects of a list; None if the user may not list them, and note that `lost` is unknown."""
        try:
            return await listed_trees(self.client, where, params)
        except Forbidden as error:
            self.unknown[unknown_without(lost, f"list {plural} in {namespace}")] = (role_for(error),)
            return None

    async def eviction(self) -> EvictionScope:
        """Return which GPUs kube-scheduler evicts pods for. Nodes are read only if a DeviceClass serves a resource."""
        classes = self.policy.classes
        if not classes:
            return EvictionScope()
        version = await self.part("version", server_version(self.client), (0, 0))
        nodes: dict[str, frozenset[str]] | None = None
        if resources_of_classes(classes.values()):
            nodes = await self.part("nodes", plugins_by_node(self.client), None)
        known = EvictionScope(None, evicts_for_devices(version))
        return known if nodes is None else supply_of(nodes, (), version).scope

    async def supply(self) -> GpuSupply:
        """Return how each node serves GPUs, as far as the user may read it; no node without a DeviceClass."""
        if not self.policy.classes:
            return GpuSupply()
        lost = "on which nodes tiers evict nobody because GPUs come by DRA"
        slices = await self.part("slices", dra_objects(self.client, ResourceSlice), (), lost)
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


class CommandLookups(LiveLookups, frozen=True):
    """Look-ups of a command: objects are read once, and a name is never taken, because the judged object may exist."""

    def fresh(self) -> Self:
        return self

    async def is_name_taken(self, *_: str) -> bool:
        return False


@asynccontextmanager
async def cluster_reader(client: Client, policy: TierPolicy) -> AsyncIterator[ClusterReader]:
    """Make a reader that shows its progress. Its policy has the cluster's DeviceClasses. Raises ApiError."""
    async with live_lookups(client) as lookups:
        with Steps() as steps:
            reader = ClusterReader(client, policy, steps, lookups)
            classes = await reader.part("device_classes", device_classes(client), {})
            yield replace(reader, policy=structs.replace(policy, classes=classes))
