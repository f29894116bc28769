"""Reads the workloads of a cluster with their pods, for commands that judge all of them. Nothing is kept whole."""

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from webhook.cli.cluster.gathering import Gathering
from webhook.cli.cluster.many_objects import cluster_about, listed_snapshot
from webhook.cli.cluster.reader import ClusterReader
from webhook.cli.cluster.rights import ASK_FOR_CLUSTER_READER, role_for, untold
from webhook.cli.manifests.documents import BadInput, Document
from webhook.cluster.gpu_nodes import gpu_nodes
from webhook.cluster.offline import ClusterAbout
from webhook.cluster.pod_listing import PodSummary, pods_with_json
from webhook.cluster.webhook_configurations import WebhookConfiguration, leaves_out, webhook_configurations
from webhook.kube.discovery import ServedResource, resources_of
from webhook.kube.errors import Forbidden
from webhook.kube.paths import path
from webhook.kube.wire import listed_objects
from webhook.objects.group_kind import POD, GroupKind
from webhook.objects.refusal import Refused
from webhook.policy.values.facts import NAME_LABEL
from webhook.policy.values.tier_policy import TierPolicy
from webhook.report.cluster_parts import Part
from webhook.report.lint.snapshot import ClusterSnapshot, number_of
from webhook.sentences.sentence import told

T = TypeVar("T")


class WorkloadsOfCluster(msgspec.Struct, frozen=True):
    """What all workloads of a cluster are judged by, and the way to them."""

    reader: ClusterReader
    listed: ClusterSnapshot
    configurations: tuple[WebhookConfiguration, ...] = ()
    flavor_on: Mapping[str, str | None] = msgspec.field(default_factory=dict)
    broken: list[str] = msgspec.field(default_factory=list)
    left_out: Counter[str] = msgspec.field(default_factory=Counter)
    hidden: list[str] = msgspec.field(default_factory=list)
    _exempt: dict[str, bool] = msgspec.field(default_factory=dict)

    def judged_by(self, policy: TierPolicy) -> ClusterAbout:
        """The cluster's facts under a policy, about one object after another."""
        return cluster_about(replace(self.listed, policy=policy), self.reader.lookups)

    async def gather(self, gathering: Gathering[T], namespace: str | None = None) -> None:
        """All workloads of a namespace or of all, then the pods with GPUs. Raises ApiError, and BadInput without pods.

        Workloads whose kind the person may not list are left out, with their pods.
        """
        served = await resources_of(self.reader.client, {kind.group for kind in gathering.kinds.by_kind})
        known_kinds = [each for each in served if GroupKind(each.group, each.kind) in gathering.kinds.by_kind]
        # Pods last: they are many, and each is kept until what makes it has been read.
        for resource in sorted(known_kinds, key=lambda each: GroupKind(each.group, each.kind) == POD):
            await self._workloads(resource, gathering, namespace)
        self._tell_hidden()
        try:
            self.reader.steps.begin("reading pods")
            await self._pods(gathering, namespace)
        except Forbidden as error:
            lost = untold(_ALL, f"list pods in {namespace or 'all namespaces'}")
            raise BadInput(f"{lost} {role_for(error) if namespace else _NAME_YOURS}") from error
        for document in gathering.without_maker():
            await self._judged(document, gathering.by_itself(document))

    @property
    def notes(self) -> list[str]:
        """Sentences on what gpu-tiers is not asked about, and on what can't be judged."""
        told = []
        if self.left_out:
            pods, names = self.left_out.total(), ", ".join(sorted(self.left_out))
            told.append(f"{number_of(pods, 'pod')} with GPUs in exempt namespaces ({names}) left out.")
        return [*told, *self.broken]

    async def _workloads(self, resource: ServedResource, gathering: Gathering[T], namespace: str | None) -> None:
        self.reader.steps.begin(f"judging {resource.plural}")
        named = {"apiVersion": resource.api_version, "kind": resource.kind}
        try:
            pages = self.reader.client.list_pages(path(resource.api_version, resource.plural, namespace))
            async for raw in listed_objects(pages):
                document = Document("", {**msgspec.json.decode(raw), **named})
                if not self._is_exempt(document.namespace):
                    await self._judged(document, gathering.workload(document))
                self.reader.steps.done()
        except Forbidden as error:
            gathering.hidden.add(GroupKind(resource.group, resource.kind))
            self.hidden.append(f"{resource.plural}{f'.{resource.group}' if resource.group else ''}")
            self.reader.roles.append(role_for(error))

    def _tell_hidden(self) -> None:
        if self.hidden:
            *others, last = self.hidden
            kinds = f"{', '.join(others)} and {last}" if others else last
            self.reader.told.append(untold("what the policy does to these and to their pods", f"list {kinds}"))

    async def _judged(self, document: Document, judging: Awaitable[None]) -> None:
        try:
            await judging
        except (Refused, BadInput) as problem:  # stored by an API server that checks it less than we do
            self.broken.append(
                f"{document.kind}/{document.name} in {document.namespace} can't be judged: {told(problem)}"
            )

    async def _pods(self, gathering: Gathering[T], namespace: str | None) -> None:
        policy, claims = self.reader.policy, self.reader.lookups.devices
        async for raw, pod in pods_with_json(self.reader.client, policy, claims, namespace):
            if pod.gpus and self._is_exempt(pod.namespace):
                self.left_out[pod.namespace] += 1
            elif pod.gpus:
                await gathering.pod(self._placed(pod), _tree_of(raw))
            self.reader.steps.done()

    def _placed(self, pod: PodSummary) -> PodSummary:
        flavor = self.flavor_on.get(pod.node)
        return replace(pod, flavor=flavor) if flavor else pod

    def _is_exempt(self, namespace: str) -> bool:
        if namespace not in self._exempt:
            labels = next((each.labels for each in self.listed.namespaces if each.name == namespace), None)
            self._exempt[namespace] = leaves_out(self.configurations, labels or {NAME_LABEL: namespace})
        return self._exempt[namespace]


def _tree_of(raw: msgspec.Raw) -> Callable[[], dict[str, Any]]:
    return lambda: msgspec.json.decode(raw)


async def workloads_of(reader: ClusterReader, namespace: str | None = None) -> WorkloadsOfCluster:
    """The facts about a cluster or a namespace. Raises ApiError, and BadInput where a right is missing for verdicts."""
    client, policy, found = reader.client, reader.policy, await listed_snapshot(reader, namespace)
    _require(reader, "classes", "device_classes", "tenants", "namespaces", "home")
    lost = "on which flavor a pod runs that names none"
    nodes = await reader.part("nodes", gpu_nodes(client, policy), (), lost) if policy.flavors else ()
    exempt = "which namespaces are exempt"
    configurations = await reader.part("configurations", webhook_configurations(client), (), exempt)
    return WorkloadsOfCluster(reader, found, configurations, {each.name: each.flavor for each in nodes})


_ALL = "what the policy does to workloads"
_NAME_YOURS = f"Name a namespace of yours: -n NAMESPACE. Else {ASK_FOR_CLUSTER_READER}"


def _require(reader: ClusterReader, *parts: Part) -> None:
    needs = [reader.unread[part] for part in parts if part in reader.unread]
    if needs:
        whole = ASK_FOR_CLUSTER_READER in reader.roles  # it has what the other has, too
        raise BadInput(f"{untold(_ALL, *needs)} {_NAME_YOURS if whole else reader.roles[0]}")
