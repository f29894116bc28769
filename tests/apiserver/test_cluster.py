"""The cluster's facts as a real API server tells them, also when the line to it breaks."""

import asyncio
import json
import socket
import time
import uuid
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml
from msgspec.structs import replace

from localcluster import Cluster
from localcluster.crds import add_crds
from tests.connections import all_closed
from webhook.cluster.live import LiveLookups, live_lookups
from webhook.cluster.pod_informer import PodInformer, SeenPod
from webhook.cluster.watched import Watched
from webhook.kube.client import Client
from webhook.kube.discovery import Discovery
from webhook.kube.errors import Unauthorized, Unreachable
from webhook.objects.pods import OwnerReference, PodClaim
from webhook.objects.refusal import Missing, Unreadable
from webhook.objects.view import view
from webhook.policy.values.tier_policy import TierPolicy
from webhook.policy.values.tiers import PriorityClass, Tier, Tiers
from webhook.policy.workloads.kind_table import BUILT_IN
from webhook.policy.workloads.workload import Devices

pytestmark = pytest.mark.apiserver

CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
CRD = Path("charts/gpu-tiers/crds/tenantquotas.gpu-tiers.dev.yaml")


async def until(what: Callable[[], bool], seconds: float = 120) -> None:
    """Wait for what a watch is about to bring."""
    async with asyncio.timeout(seconds):
        while not what():  # noqa: ASYNC110 - the watched thing has no event
            await asyncio.sleep(0.05)


class Hands:
    """kubectl, in this test's namespace, off the event loop."""

    def __init__(self, cluster: Cluster, namespace: str) -> None:
        self.cluster = cluster
        self.namespace = namespace

    async def __call__(self, *arguments: str, check: bool = True) -> None:
        await asyncio.to_thread(self.cluster.kubectl, *arguments, f"--namespace={self.namespace}", check=check)

    async def make(self, kind: str, name: str, api_version: str = "v1", **fields: Any) -> str:
        """Create an object; its uid. `metadata` and the other fields as they stand in a manifest."""
        metadata = {"name": name, **fields.pop("metadata", {})}
        manifest = json.dumps({"apiVersion": api_version, "kind": kind, "metadata": metadata, **fields})
        arguments = ("create", f"--namespace={self.namespace}", "-o", "json", "-f", "-")
        made = await asyncio.to_thread(self.cluster.kubectl, *arguments, input=manifest)
        return str(made.json()["metadata"]["uid"])

    async def make_job(self, name: str, owner: OwnerReference | None = None, **labels: str) -> OwnerReference:
        """A suspended Job, so that no controller acts on it; the reference that its pods would bear."""
        template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "train", "image": "example.test/t"}]}}
        metadata = {"labels": labels, "ownerReferences": [as_written(owner)] if owner else []}
        spec = {"suspend": True, "parallelism": 2, "template": template}
        return reference("Job", name, await self.make("Job", name, "batch/v1", metadata=metadata, spec=spec))


def reference(kind: str, name: str, uid: str, api_version: str = "batch/v1") -> OwnerReference:
    return OwnerReference(api_version=api_version, kind=kind, name=name, uid=uid, controller=True)


def as_written(owner: OwnerReference) -> dict[str, object]:
    who = {"apiVersion": owner.api_version, "kind": owner.kind, "name": owner.name, "uid": owner.uid}
    return {**who, "controller": True}


@pytest.fixture
def hands(cluster: Cluster, namespace: str) -> Hands:
    return Hands(cluster, namespace)


@pytest.fixture(scope="module", autouse=True)
def tenant_quotas(cluster: Cluster) -> Iterator[None]:
    """The CustomResourceDefinition, where no chart has put it there."""
    there = not cluster.kubectl("get", "crd", "tenantquotas.gpu-tiers.dev", check=False).code
    if not there:
        add_crds(cluster, yaml.safe_load(CRD.read_text()))
    yield
    if not there:
        cluster.kubectl("delete", "-f", str(CRD))


@pytest.fixture
async def live(client: Client) -> AsyncIterator[Watched]:
    async with Watched(client) as cluster:
        await asyncio.wait_for(cluster.wait_synced(), 120)
        yield cluster


@pytest.fixture
async def lookups(client: Client) -> AsyncIterator[LiveLookups]:
    async with live_lookups(client) as made:
        yield made


@asynccontextmanager
async def watching(kubeconfig: Path) -> AsyncIterator[Watched]:
    async with await Client.connect(kubeconfig) as client, Watched(client) as live:
        yield live


class CuttableProxy:
    """The line to the API server, which a test may cut and mend. Passes bytes on; TLS stays end to end."""

    def __init__(self, host: str, port: int) -> None:
        self._there = (host, port)
        self._server: asyncio.Server | None = None
        self._calls: set[asyncio.Task[None]] = set()
        self._ends: set[asyncio.StreamWriter] = set()
        self.port = 0

    async def mend(self) -> None:
        self._server = await asyncio.start_server(self._called, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def cut(self) -> None:
        """Refuse new connections and break those that are open."""
        server, self._server = self._server, None
        if server is not None:
            server.close()
        for call in self._calls:
            call.cancel()
        await asyncio.gather(*self._calls, return_exceptions=True)
        self._calls.clear()
        for end in self._ends:
            end.transport.abort()  # a call that was cancelled before it began has not done so
        await all_closed([each.get_extra_info("socket") for each in self._ends])
        self._ends.clear()

    def _called(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._ends.add(writer)
        if self._server is None:  # it was accepted before the cut
            writer.transport.abort()
        else:
            self._calls.add(asyncio.create_task(self._pass_on(reader, writer)))

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there_reader, there_writer = await asyncio.open_connection(*self._there)
            self._ends.add(there_writer)
            try:
                await asyncio.gather(_pump(reader, there_writer), _pump(there_reader, writer))
            finally:
                there_writer.transport.abort()
        finally:
            writer.transport.abort()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while piece := await reader.read(65536):
        writer.write(piece)
        await writer.drain()
    writer.write_eof()


@asynccontextmanager
async def over_a_line(cluster: Cluster, folder: Path) -> AsyncIterator[tuple[CuttableProxy, Path]]:
    """A line, and a kubeconfig that leads over it."""
    config = yaml.safe_load(cluster.kubeconfig.read_text())
    target = config["clusters"][0]["cluster"]
    server = urlsplit(target["server"])
    line = CuttableProxy(server.hostname or "", server.port or 443)
    await line.mend()
    target["server"] = f"https://127.0.0.1:{line.port}"
    target["tls-server-name"] = server.hostname
    kubeconfig = folder / "over-a-line.kubeconfig"
    kubeconfig.write_text(yaml.safe_dump(config))
    try:
        yield line, kubeconfig
    finally:
        await line.cut()


# Watching


async def test_classes_namespaces_and_their_changes_are_seen(live: Watched, hands: Hands) -> None:
    name = f"tier-{uuid.uuid4().hex[:6]}"
    assert live.classes()["system-node-critical"].value == 2_000_001_000
    await hands("create", "priorityclass", name, "--value=7", "--preemption-policy=Never")
    try:
        await until(lambda: name in live.classes())
        assert live.classes()[name] == PriorityClass(name, 7, "Never")
    finally:
        await hands("delete", "priorityclass", name)
    await until(lambda: name not in live.classes())
    await hands("label", "namespace", hands.namespace, "example.com/team=a")
    await until(lambda: ("example.com/team", "a") in labels(live, hands.namespace).items())


def labels(live: Watched, name: str) -> Mapping[str, str]:
    found = {each.name: each.labels for each in live.namespaces()}
    return found.get(name, {})


async def test_a_namespace_just_made_is_known_before_the_watch_brings_it(client: Client, hands: Hands) -> None:
    never_started = Watched(client)
    found = await never_started.namespace(hands.namespace)
    assert found is not None
    assert (found.name, found.labels) == (hands.namespace, {"kubernetes.io/metadata.name": hands.namespace})
    with pytest.raises(Unreadable, match="namespace no-such-namespace does not exist"):
        await never_started.namespace("no-such-namespace")


async def test_what_happens_while_the_line_is_cut_is_not_lost(cluster: Cluster, hands: Hands, tmp_path: Path) -> None:
    doomed, late = (f"line-{uuid.uuid4().hex[:6]}" for _ in range(2))
    await hands("create", "priorityclass", doomed, "--value=7")
    try:
        async with over_a_line(cluster, tmp_path) as (line, kubeconfig), watching(kubeconfig) as live:
            await asyncio.wait_for(live.wait_synced(), 120)
            assert doomed in live.classes()
            await line.cut()
            await until(lambda: bool(live.problems()))
            await hands("delete", "priorityclass", doomed)
            await hands("create", "priorityclass", late, "--value=8")
            assert doomed in live.classes()
            await line.mend()
            await until(lambda: late in live.classes() and doomed not in live.classes())
            await until(lambda: not live.problems())
    finally:
        await hands("delete", "priorityclass", doomed, late, "--ignore-not-found")


async def test_without_rights_it_never_says_that_it_has_read_all(cluster: Cluster, tmp_path: Path) -> None:
    config = yaml.safe_load(cluster.kubeconfig.read_text())
    config["users"][0]["user"] = {"token": "not-a-token"}
    kubeconfig = tmp_path / "stranger.kubeconfig"
    kubeconfig.write_text(yaml.safe_dump(config))
    async with await Client.connect(kubeconfig) as client, Watched(client) as live:
        await until(lambda: len(live.problems()) == 3)
        assert not live.synced
        assert any("priorityclasses: HTTP 401, Unauthorized" in problem for problem in live.problems())
        with pytest.raises(Unauthorized):
            await client.get("/api/v1/namespaces/default")


async def test_nobody_at_the_other_end(cluster: Cluster, tmp_path: Path) -> None:
    async with over_a_line(cluster, tmp_path) as (line, kubeconfig), await Client.connect(kubeconfig) as client:
        await line.cut()
        with pytest.raises(Unreachable, match="GET /api/v1/namespaces/default: "):
            await client.get("/api/v1/namespaces/default")
        with pytest.raises(Unreadable, match="namespace default can't be read: GET "):
            await Watched(client).namespace("default")


async def test_an_api_server_that_does_not_answer_is_not_waited_for(cluster: Cluster, tmp_path: Path) -> None:
    config = yaml.safe_load(cluster.kubeconfig.read_text())
    kubeconfig = tmp_path / "silent.kubeconfig"
    with socket.create_server(("127.0.0.1", 0)) as silent:
        config["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{silent.getsockname()[1]}"
        kubeconfig.write_text(yaml.safe_dump(config))
        async with await Client.connect(kubeconfig) as client:
            began = time.monotonic()
            with pytest.raises(Unreadable, match=r"namespace default can't be read: .* no answer in time"):
                await Watched(client).namespace("default")
            assert time.monotonic() - began < 20


# Owners


async def test_a_chain_is_walked_nearest_first(lookups: LiveLookups, hands: Hands) -> None:
    template = {"spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "a", "image": "a"}]}}}}
    spec = {"schedule": "0 0 1 1 *", "suspend": True, "jobTemplate": template}
    nightly = reference("CronJob", "nightly", await hands.make("CronJob", "nightly", "batch/v1", spec=spec))
    chain = await lookups.owners(hands.namespace, await hands.make_job("nightly-1", nightly, team="a"), BUILT_IN)
    assert [str(owner) for owner in chain] == ["Job/nightly-1", "CronJob/nightly"]
    assert (chain[0].labels["team"], chain[0].members[0].count, chain[0].members[0].path) == ("a", 2, "spec.template")


async def test_a_forged_uid_is_reported_although_the_true_one_was_just_read(lookups: LiveLookups, hands: Hands) -> None:
    true = await hands.make_job("train")
    assert len(await lookups.owners(hands.namespace, true, BUILT_IN)) == 1
    with pytest.raises(Unreadable, match="owner Job/train has another UID"):
        await lookups.owners(hands.namespace, reference("Job", "train", str(uuid.uuid4())), BUILT_IN)
    with pytest.raises(Unreadable, match="owner Job/other does not exist"):
        await lookups.owners(hands.namespace, reference("Job", "other", true.uid), BUILT_IN)


async def test_a_reference_never_leads_out_of_its_kind_and_namespace(lookups: LiveLookups, hands: Hands) -> None:
    for name in ("../../default/jobs/x", "..", "x?watch=1"):
        with pytest.raises(Unreadable, match="is not a valid name in the Kubernetes API"):
            await lookups.owners(hands.namespace, reference("Job", name, "1"), BUILT_IN)


async def test_a_ring_of_owners_is_reported(lookups: LiveLookups, hands: Hands) -> None:
    first = await hands.make_job("first")
    second = await hands.make_job("second", first)
    ring = json.dumps({"metadata": {"ownerReferences": [as_written(second)]}})
    await hands("patch", "job", "first", "--type=merge", "-p", ring)
    with pytest.raises(Unreadable, match="owner Job/second is among its own owners"):
        await lookups.owners(hands.namespace, second, BUILT_IN)


async def test_the_walk_ends_at_a_kind_that_the_table_does_not_hold(lookups: LiveLookups, hands: Hands) -> None:
    parent = reference("ConfigMap", "plan", await hands.make("ConfigMap", "plan"), "v1")
    chain = await lookups.owners(hands.namespace, await hands.make_job("step", parent), BUILT_IN)
    assert [str(owner) for owner in chain] == ["Job/step"]
    assert await lookups.owners(hands.namespace, parent, BUILT_IN) == ()


async def test_a_kind_that_the_cluster_does_not_serve_ends_the_walk(lookups: LiveLookups, hands: Hands) -> None:
    """Neither an operator that is not installed nor a wrong plural in the table may refuse anybody's pod."""
    for nowhere in (
        reference("PaddleJob", "train", "1", "kubeflow.org/v0"),
        reference("Job", "train", "1", "batch/v0"),
    ):
        assert await lookups.owners(hands.namespace, nowhere, BUILT_IN) == ()


async def test_the_pods_of_one_job_cost_one_read(lookups: LiveLookups, client: Client, hands: Hands) -> None:
    owner = await hands.make_job("wide")
    reads: list[str] = []
    read = client.get

    async def counted(path: str, **options: Any) -> dict[str, Any]:
        reads.append(path)
        return await read(path, **options)

    client.get = counted  # type: ignore[method-assign]
    await asyncio.gather(*(lookups.owners(hands.namespace, owner, BUILT_IN) for _ in range(200)))
    assert reads == [f"/apis/batch/v1/namespaces/{hands.namespace}/jobs/wide"]


# Groups and claims


async def test_a_pod_group_tells_its_class(lookups: LiveLookups, client: Client, hands: Hands) -> None:
    try:
        version = await Discovery(client).api_version("scheduling.k8s.io", "podgroups")
    except Unreadable:
        pytest.skip("this cluster serves no PodGroups: start it with the GenericWorkload gate")
    name = f"gang-{uuid.uuid4().hex[:6]}"
    await hands("create", "priorityclass", name, "--value=900")
    try:
        spec = {"schedulingPolicy": {"basic": {}}, "priorityClassName": name}
        await hands.make("PodGroup", "gang", version, spec=spec)
        group = await lookups.pod_group(hands.namespace, "gang")
        assert (group.name, group.priority_class_name) == ("gang", name)
    finally:
        await hands("delete", "priorityclass", name)
    with pytest.raises(Unreadable, match="PodGroup/none does not exist"):
        await lookups.pod_group(hands.namespace, "none")


async def test_claims_by_name_and_by_template(lookups: LiveLookups, client: Client, hands: Hands) -> None:
    version = await Discovery(client).api_version("resource.k8s.io", "resourceclaims")
    requests = [
        {"name": "two", "exactly": {"deviceClassName": "gpu.example.com", "count": 2}},
        {"name": "any", "firstAvailable": [{"name": "s", "deviceClassName": "mig.example.com", "count": 7}]},
    ]
    spec = {"devices": {"requests": requests}}
    await hands.make("ResourceClaim", "shared", version, spec=spec)
    await hands.make("ResourceClaimTemplate", "each", version, spec={"spec": spec})
    two, seven = Devices("gpu.example.com", 2, "gpus", "two"), Devices("mig.example.com", 7, "gpus", "any")
    shared = tuple(replace(each, claim=f"{hands.namespace}/shared") for each in (two, seven))
    assert await lookups.devices(hands.namespace, asking(resourceClaimName="shared")) == shared
    assert await lookups.devices(hands.namespace, asking(resourceClaimTemplateName="each")) == (two, seven)
    with pytest.raises(Missing, match="ResourceClaimTemplate/none does not exist"):
        await lookups.devices(hands.namespace, asking(resourceClaimTemplateName="none"))


def asking(**claim: str) -> PodClaim:
    return view({"name": "gpus", **claim}, PodClaim)


# Pods


class Counted:
    """Pods as a ledger would keep them: name and end, of one namespace."""

    def __init__(self, namespace: str) -> None:
        self.namespace = namespace
        self.pods: dict[str, tuple[str, float | None]] = {}
        self.lists = 0

    async def project(self, seen: SeenPod) -> tuple[str, float | None] | None:
        metadata = seen.metadata
        return (metadata.name, seen.ends_in) if metadata.namespace == self.namespace else None

    def changed(self, uid: str, value: tuple[str, float | None] | None) -> None:
        if value is None:
            self.pods.pop(uid, None)
        else:
            self.pods[uid] = value

    def listed(self, pods: Mapping[str, tuple[str, float | None]]) -> None:
        self.lists += 1
        self.pods = dict(pods)

    def names(self) -> set[str]:
        return {name for name, _ in self.pods.values()}

    def end_of(self, name: str) -> float | None:
        return next((end for each, end in self.pods.values() if each == name), None)


async def make_pod(hands: Hands, name: str, **spec: object) -> str:
    """A pod that no node takes."""
    bound = {"nodeName": "no-such-node", **spec}
    return await hands.make("Pod", name, spec={"containers": [{"name": "a", "image": "example.test/a"}], **bound})


async def test_pods_are_fed_from_their_creation_to_their_end(client: Client, hands: Hands) -> None:
    counted = Counted(hands.namespace)
    await make_pod(hands, "before")
    async with PodInformer(client, counted.project, counted.changed, counted.listed) as feed:
        await asyncio.wait_for(feed.wait_synced(), 120)
        assert counted.names() == {"before"}
        await make_pod(hands, "slow", terminationGracePeriodSeconds=120)
        await until(lambda: counted.names() == {"before", "slow"})
        done = json.dumps({"status": {"phase": "Succeeded"}})
        await hands("patch", "pod", "before", "--subresource=status", "--type=merge", "-p", done)
        await until(lambda: counted.names() == {"slow"})
        await hands("delete", "pod", "slow", "--wait=false")
        await until(lambda: counted.end_of("slow") is not None)
        assert counted.end_of("slow") == 240
        await hands("delete", "pod", "slow", "--force", "--grace-period=0")
        await until(lambda: not counted.pods)


async def test_a_relist_is_had_at_once(client: Client, hands: Hands) -> None:
    counted = Counted(hands.namespace)
    await make_pod(hands, "here")
    async with PodInformer(client, counted.project, counted.changed, counted.listed) as feed:
        await asyncio.wait_for(feed.wait_synced(), 120)
        counted.pods.clear()
        feed.relist()
        await until(lambda: counted.lists == 2)
        assert counted.names() == {"here"}
    await hands("delete", "pod", "here", "--force", "--grace-period=0")


async def test_a_fault_of_our_own_is_reported_and_tried_again(client: Client, hands: Hands) -> None:
    counted, faults = Counted(hands.namespace), iter([ValueError("a fault")])

    async def project(seen: SeenPod) -> tuple[str, float | None] | None:
        for fault in faults:
            raise fault
        return await counted.project(seen)

    await make_pod(hands, "here")
    async with PodInformer(client, project, counted.changed, counted.listed) as feed:
        await until(lambda: "a fault" in "".join(feed.problems()))
        assert not feed.synced
        await until(lambda: counted.names() == {"here"} and not feed.problems())
    await hands("delete", "pod", "here", "--force", "--grace-period=0")


# TenantQuotas

POLICY = TierPolicy(
    tiers=Tiers([Tier("gpu-training", 1000), Tier("gpu-batch", 400)]),
    default_tier="gpu-batch",
)


@pytest.fixture
async def tenants(hands: Hands) -> AsyncIterator[Callable[..., Any]]:
    """Makes TenantQuotas that select this test's namespace, and takes them away."""
    made: list[str] = []

    async def make(**spec: Any) -> str:
        name = f"tenant-{uuid.uuid4().hex[:6]}"
        made.append(name)
        selector = {"matchLabels": {"kubernetes.io/metadata.name": hands.namespace}}
        await hands.make("TenantQuota", name, "gpu-tiers.dev/v1alpha1", spec={"namespaceSelector": selector, **spec})
        return name

    yield make
    await hands("delete", "tenantquota", *made, "--ignore-not-found")
