"""Self-managed certificates against a real API server, with no more rights than the chart gives."""

import asyncio
import base64
import contextlib
import json
import ssl
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest
import yaml
from cryptography import x509

from certs.configurations import WebhookConfigurations
from certs.make import Lifetimes, names_of, utc_now
from certs.self_managed import CertificateSecret, SelfManaged, StoredPairs, advance, certificates_in, data_of
from certs.source import Bundle, CertificateError, Objects, Outdated, apply
from localcluster import Cluster
from webhook.kube.client import Client
from webhook.kube.errors import Failed
from webhook.server.tls import CertificateObjects

pytestmark = pytest.mark.apiserver

SECRET = "gpu-tiers-tls"  # noqa: S105 - a name
NAMES = ("gpu-tiers.gpu-tiers.svc", "127.0.0.1")
KINDS = ("mutatingwebhookconfiguration", "validatingwebhookconfiguration")


@dataclass(frozen=True)
class Installed:
    """The objects of the chart: an empty Secret, two configurations without caBundle, and an account's rights."""

    cluster: Cluster
    namespace: str
    name: str
    """Of both configurations."""

    def secret(self) -> dict[str, bytes]:
        found = self.cluster.api.get(f"secret/{SECRET}", self.namespace)
        return {key: base64.b64decode(value) for key, value in (found.get("data") or {}).items()}

    def fill(self, data: dict[str, bytes]) -> None:
        encoded = {key: base64.b64encode(value).decode() for key, value in data.items()}
        self.cluster.api.patch(f"secret/{SECRET}", {"data": encoded}, self.namespace)

    def empty(self) -> None:
        removed = [{"op": "remove", "path": "/data"}]
        self.cluster.api.patch(f"secret/{SECRET}", removed, self.namespace, form="json")

    def bundles(self, kind: str) -> list[bytes]:
        """The caBundle of each entry, decoded."""
        webhooks = self.cluster.api.get(f"{kind}/{self.name}")["webhooks"]
        return [base64.b64decode(webhook["clientConfig"].get("caBundle", "")) for webhook in webhooks]

    def everywhere(self) -> set[bytes]:
        """The distinct caBundles of all entries of both configurations."""
        return {bundle for kind in KINDS for bundle in self.bundles(kind)}

    def wipe(self, kind: str) -> None:
        """Take caBundle out of each entry, as a `helm upgrade` may."""
        operations = [
            {"op": "remove", "path": f"/webhooks/{index}/clientConfig/caBundle"}
            for index in range(len(self.bundles(kind)))
        ]
        self.cluster.api.patch(f"{kind}/{self.name}", operations, form="json")

    def call_a_service(self) -> None:
        """Have each entry name a Service without a path, as the chart renders it."""
        service = {"service": {"name": "gpu-tiers", "namespace": self.namespace}}
        for kind in KINDS:
            change = [
                {"op": "replace", "path": f"/webhooks/{index}/clientConfig", "value": service} for index in (0, 1)
            ]
            self.cluster.api.patch(f"{kind}/{self.name}", change, form="json")

    def paths(self) -> frozenset[str]:
        """The distinct paths of the Service in both configurations."""
        found = [each for kind in KINDS for each in self.cluster.api.get(f"{kind}/{self.name}")["webhooks"]]
        return frozenset(each["clientConfig"]["service"].get("path", "") for each in found)

    def apply_configurations(self, port: int = 1) -> None:
        """Register a webhook on 127.0.0.1:`port` for ConfigMaps of this namespace alone."""
        self.cluster.api.apply(*yaml.safe_load_all(configurations(self.name, self.namespace, port)))

    def delete_configurations(self) -> None:
        self.cluster.api.delete(*(f"{kind}/{self.name}" for kind in KINDS))


@pytest.fixture
def installed(cluster: Cluster, namespace: str) -> Iterator[Installed]:
    made = Installed(cluster, namespace, f"zz-{uuid.uuid4().hex[:8]}")
    try:
        cluster.api.apply(*yaml.safe_load_all(account(made.name, namespace)))
        made.apply_configurations()
        yield made
    finally:
        cluster.api.delete(*(f"{kind}/{made.name}" for kind in (*KINDS, "clusterrole", "clusterrolebinding")))


@pytest.fixture
async def objects(installed: Installed, tmp_path: Path) -> AsyncIterator[Objects]:
    """The API server as the webhook's own ServiceAccount."""
    config = yaml.safe_load(installed.cluster.kubeconfig.read_text())
    config["users"][0]["user"] = {"token": installed.cluster.api.token("gpu-tiers", installed.namespace)}
    async with await Client.connect(written_to(tmp_path, config)) as client:
        yield CertificateObjects(client)


def written_to(folder: Path, kubeconfig: dict) -> Path:
    path = folder / "account.kubeconfig"
    path.write_text(yaml.safe_dump(kubeconfig))
    return path


class Replica:
    """One webhook's certificates, wired as the server wires them."""

    def __init__(self, objects: Objects, installed: Installed, **options: object) -> None:
        secret = CertificateSecret(objects, installed.namespace, SECRET)
        self.configurations = WebhookConfigurations(
            objects, installed.name, wanted=secret.ca_bundle, every=options.get("every", 30.0)
        )
        self.source = SelfManaged(secret, self.configurations, **{"names": NAMES, "every": 30.0, **options})
        self.served: list[Bundle] = []

    @property
    def registered(self) -> bool:
        seen = self.configurations.seen
        return len(seen) == len(KINDS) and all(each.registered for each in seen.values())

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator["Replica"]:
        self.served.append(await self.source.load())
        tasks = [asyncio.create_task(self.configurations.run()), asyncio.create_task(self._follow())]
        try:
            yield self
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _follow(self) -> None:
        async for bundle in self.source.changes():
            self.served.append(bundle)


async def eventually(condition: Callable[[], bool], *, seconds: float = 15) -> None:
    """Wait until the condition, which may call kubectl, is true."""
    async with asyncio.timeout(seconds):
        while not await asyncio.to_thread(condition):  # noqa: ASYNC110 - the cluster knows no Event
            await asyncio.sleep(0.1)


async def test_an_empty_secret_is_filled_and_trusted_in_both_configurations(objects, installed):
    async with Replica(objects, installed).running() as replica:
        data = installed.secret()
        assert set(data) == {"ca.crt", "ca.key", "tls.crt", "tls.key"}
        served = x509.load_pem_x509_certificate(replica.served[0].certificate)
        assert names_of(served) == frozenset(NAMES)
        assert replica.served[0].certificate == data["tls.crt"]
        await eventually(lambda: installed.everywhere() == {data["ca.crt"]})
        await eventually(lambda: replica.registered)


async def test_replicas_that_start_at_once_agree_on_one_ca(objects, installed):
    replicas = [Replica(objects, installed) for _ in range(5)]
    bundles = await asyncio.gather(*(replica.source.load() for replica in replicas))
    assert len(set(bundles)) == 1
    assert bundles[0].ca == installed.secret()["ca.crt"]


async def test_replicas_that_start_at_once_agree_on_one_path_for_each_configuration(objects, installed, caplog):
    installed.call_a_service()
    replicas = [Replica(objects, installed) for _ in range(5)]
    async with contextlib.AsyncExitStack() as stack:
        await asyncio.gather(*(stack.enter_async_context(each.running()) for each in replicas))
        await eventually(lambda: all(each.registered for each in replicas))
        await eventually(lambda: {each.configurations.paths for each in replicas} == {installed.paths()})
    assert {path[33:] for path in installed.paths()} == {"/mutate", "/validate"}
    assert len(installed.paths()) == 2
    assert "webhook not registered" not in caplog.text, "who wrote second reads what the first wrote"


async def test_a_restart_makes_nothing_new(objects, installed):
    first = await Replica(objects, installed).source.load()
    assert await Replica(objects, installed).source.load() == first


@pytest.mark.parametrize("kind", KINDS)
async def test_a_wiped_ca_bundle_is_back_at_once_and_the_rest_untouched(objects, installed, kind):
    async with Replica(objects, installed).running() as replica:
        ca = replica.served[0].ca
        await eventually(lambda: installed.everywhere() == {ca})
        before = entries(installed, kind)
        installed.wipe(kind)
        await eventually(lambda: installed.everywhere() == {ca})
        assert entries(installed, kind) == before


async def test_a_missing_configuration_is_seen_never_made_and_trusted_again_when_it_returns(objects, installed):
    async with Replica(objects, installed).running() as replica:
        await eventually(lambda: replica.registered)
        installed.delete_configurations()
        await eventually(lambda: not replica.registered)
        assert not installed.cluster.api.has(f"{KINDS[0]}/{installed.name}")
        installed.apply_configurations()
        await eventually(lambda: replica.registered)
        await eventually(lambda: installed.everywhere() == {replica.served[0].ca})


async def test_a_broken_secret_is_replaced_while_running_and_the_new_ca_spread(objects, installed):
    async with Replica(objects, installed).running() as replica:
        first = replica.served[0]
        installed.fill({"ca.crt": b"broken", "tls.crt": b"broken"})
        await eventually(lambda: replica.served[-1] != first)
        await eventually(lambda: installed.everywhere() == {installed.secret()["ca.crt"]})
        assert replica.served[-1].ca == installed.secret()["ca.crt"]


async def test_an_emptied_secret_means_a_new_ca_and_the_old_one_is_trusted_no_more(objects, installed):
    async with Replica(objects, installed).running() as one, Replica(objects, installed).running() as other:
        first = one.served[0]
        installed.empty()
        await eventually(lambda: one.served[-1] == other.served[-1] != first)
        assert first.ca.strip() not in one.served[-1].ca
        await eventually(lambda: installed.everywhere() == {one.served[-1].ca})


async def test_other_names_are_in_the_next_certificate_of_the_same_ca(objects, installed):
    first = await Replica(objects, installed).source.load()
    second = await Replica(objects, installed, names=(*NAMES, "webhook.example.com")).source.load()
    assert second.ca == first.ca
    assert "webhook.example.com" in names_of(x509.load_pem_x509_certificate(second.certificate))


async def test_a_secret_that_the_chart_did_not_make_is_a_clear_error(objects, installed):
    installed.cluster.api.delete(f"secret/{SECRET}", namespace=installed.namespace)
    message = f"Secret {installed.namespace}/{SECRET} does not exist: install or upgrade the chart"
    with pytest.raises(CertificateError, match=message):
        await Replica(objects, installed).source.load()


async def test_rights_reach_no_further_than_the_three_names(objects, installed):
    secrets = f"/api/v1/namespaces/{installed.namespace}/secrets"
    for path in (secrets, f"/api/v1/namespaces/{installed.namespace}"):
        with pytest.raises(CertificateError, match="cannot") as refused:
            await objects.get(path, "somebody-elses")
        assert isinstance(refused.value.__cause__, Failed)
        assert refused.value.__cause__.code == 403


async def test_the_second_writer_gets_a_conflict_and_a_mistake_is_no_race(objects, installed):
    secrets = f"/api/v1/namespaces/{installed.namespace}/secrets"
    seen = (await objects.get(secrets, SECRET))["metadata"]["resourceVersion"]
    await objects.patch(secrets, SECRET, {"metadata": {"resourceVersion": seen}, "data": {"tls.crt": "Zmlyc3Q="}})
    stale = {"op": "test", "path": "/metadata/resourceVersion", "value": seen}
    for second in ({"metadata": {"resourceVersion": seen}}, [stale]):
        with pytest.raises(Outdated):
            await objects.patch(secrets, SECRET, second)
    with pytest.raises(CertificateError, match="HTTP 4") as mistake:
        await objects.patch(secrets, SECRET, {"type": "kubernetes.io/other"})
    assert not isinstance(mistake.value, Outdated)


async def test_an_api_server_that_is_not_there_is_named(installed, tmp_path):
    config = yaml.safe_load(installed.cluster.kubeconfig.read_text())
    config["clusters"][0]["cluster"]["server"] = "https://127.0.0.1:1"
    async with await Client.connect(written_to(tmp_path, config)) as client:
        with pytest.raises(CertificateError, match=r"GET /api/v1/namespaces/.* Cannot connect"):
            await Replica(CertificateObjects(client), installed).source.load()


async def test_no_call_fails_while_the_ca_rotates(objects, installed):
    """failurePolicy Fail, a new connection for every call: one untrusted certificate would refuse a ConfigMap."""
    installed.fill(aged())
    old_ca = installed.secret()["ca.crt"]
    options = {"every": 0.3, "lifetimes": Lifetimes(settle=timedelta(seconds=2))}
    async with Replica(objects, installed, **options).running() as replica, webhook(replica) as port:
        old = replica.served[0].certificate
        installed.apply_configurations(port)
        await eventually(lambda: installed.everywhere() == {old_ca})
        await eventually(lambda: accepted(installed))
        refusals: list[str] = []
        async with calling(installed, refusals) as calls:
            await eventually(lambda: replica.served[-1].ca != old_ca, seconds=30)
            assert replica.served[-1].certificate == old
            assert old_ca in replica.served[-1].ca
            await eventually(lambda: replica.served[-1].certificate != old, seconds=30)
            since = len(calls)
            await eventually(lambda: len(calls) > since + 5)
        assert refusals == []
        assert installed.everywhere() == {replica.served[-1].ca}
        assert len(x509.load_pem_x509_certificates(replica.served[-1].ca)) == 2


async def test_two_that_rotate_at_once_make_one_new_ca_and_serve_one_certificate(objects, installed):
    installed.fill(aged())
    old_ca = installed.secret()["ca.crt"]
    options = {"every": 0.3, "lifetimes": Lifetimes(settle=timedelta(seconds=1))}
    first, second = Replica(objects, installed, **options), Replica(objects, installed, **options)
    async with first.running() as one, second.running() as other:
        old = one.served[0].certificate
        await eventually(lambda: one.served[-1].certificate != old, seconds=30)
        await eventually(lambda: other.served[-1] == one.served[-1])
        bundles = [{each.ca for each in replica.served} for replica in (one, other)]
        assert bundles[0] == bundles[1] == {old_ca, one.served[-1].ca}
        assert len(x509.load_pem_x509_certificates(one.served[-1].ca)) == 2
        await eventually(lambda: installed.everywhere() == {one.served[-1].ca})


def aged() -> dict[str, bytes]:
    """A Secret whose CA reaches 4/5 of its life, which began `backdate` before its birth, in five seconds."""
    now, lifetimes = utc_now(), Lifetimes()
    life = lifetimes.ca + lifetimes.backdate
    birth = now + timedelta(seconds=5) - life * 4 / 5 + lifetimes.backdate
    born = advance(StoredPairs(), now=birth, names=NAMES, lifetimes=Lifetimes(), trusted=False)
    renewed = advance(born.stored, now=now, names=NAMES, lifetimes=Lifetimes(), trusted=False)
    assert renewed.reasons == ("the certificate expired",)
    assert len(certificates_in(data_of(renewed.stored)).authorities) == 1
    return data_of(renewed.stored)


@contextlib.asynccontextmanager
async def webhook(replica: Replica) -> AsyncIterator[int]:
    """A webhook that allows all, with the certificate served last, and closes every connection."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)

    def current(connection: ssl.SSLObject, _name: str | None, _context: ssl.SSLContext) -> None:
        fresh = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        apply(fresh, replica.served[-1])
        connection.context = fresh

    apply(context, replica.served[-1])
    context.sni_callback = current
    answering: set[asyncio.Task] = set()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        answering.add(asyncio.current_task())
        await allow(reader, writer)

    server = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=context)
    async with server:
        yield server.sockets[0].getsockname()[1]
    await asyncio.gather(*answering)


async def allow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
    length = int(head.split("content-length:")[1].split("\r\n")[0])
    review = json.loads(await reader.readexactly(length))
    review["response"] = {"uid": review.pop("request")["uid"], "allowed": True}
    body = json.dumps(review).encode()
    headers = f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\nContent-Type: application/json\r\n"
    writer.write(f"{headers}Connection: close\r\n\r\n".encode() + body)
    await writer.drain()
    writer.close()
    with contextlib.suppress(ConnectionError, ssl.SSLError):
        await writer.wait_closed()


def accepted(installed: Installed) -> bool:
    return not dry_run(installed)


def dry_run(installed: Installed) -> str:
    """Return the API server's error when nobody may make a ConfigMap, and "" where one may."""
    asked = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "asked"}}
    return installed.cluster.api.create(asked, installed.namespace, dry_run=True, check=False).stderr


@contextlib.asynccontextmanager
async def calling(installed: Installed, refusals: list[str]) -> AsyncIterator[list[str]]:
    """Call through the API server again and again; a list that grows by one with each call."""
    calls: list[str] = []
    ended = asyncio.Event()

    async def call() -> None:
        while not ended.is_set():
            answer = await asyncio.to_thread(dry_run, installed)
            calls.append(answer)
            refusals.extend([answer] if answer else [])

    task = asyncio.create_task(call())
    try:
        yield calls
    finally:
        ended.set()
        await task


def entries(installed: Installed, kind: str) -> list[dict]:
    return list(installed.cluster.api.get(f"{kind}/{installed.name}")["webhooks"])


def configurations(name: str, namespace: str, port: int) -> str:
    def entry(number: int, path: str) -> dict:
        return {
            "name": f"entry-{number}.gpu-tiers.dev",
            "clientConfig": {"url": f"https://127.0.0.1:{port}/{path}"},
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
            "rules": [
                {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["CREATE"]}
            ],
            "matchConditions": [{"name": "ours", "expression": "object.metadata.name == 'asked'"}],
            "failurePolicy": "Fail",
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            "timeoutSeconds": 5,
        }

    return yaml.safe_dump_all(
        {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": kind,
            "metadata": {"name": name},
            "webhooks": [entry(number, path) for number in range(2)],
        }
        for kind, path in (
            ("MutatingWebhookConfiguration", "mutate"),
            ("ValidatingWebhookConfiguration", "validate"),
        )
    )


def account(name: str, namespace: str) -> str:
    """The ServiceAccount, its rights as the chart's rbac.yaml has them, and the empty Secret."""
    verbs = ["get", "watch", "patch"]
    configurations = ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"]
    subject = {"kind": "ServiceAccount", "name": "gpu-tiers", "namespace": namespace}
    group, rbac = "rbac.authorization.k8s.io", "rbac.authorization.k8s.io/v1"
    local, wide = {"name": "gpu-tiers", "namespace": namespace}, {"name": name}
    return yaml.safe_dump_all(
        [
            {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": local},
            {
                "apiVersion": "v1",
                "kind": "Secret",
                "type": "Opaque",
                "metadata": {"name": SECRET, "namespace": namespace},
            },
            {
                "apiVersion": rbac,
                "kind": "Role",
                "metadata": local,
                "rules": [{"apiGroups": [""], "resources": ["secrets"], "resourceNames": [SECRET], "verbs": verbs}],
            },
            {
                "apiVersion": rbac,
                "kind": "RoleBinding",
                "metadata": local,
                "roleRef": {"apiGroup": group, "kind": "Role", "name": "gpu-tiers"},
                "subjects": [subject],
            },
            {
                "apiVersion": rbac,
                "kind": "ClusterRole",
                "metadata": wide,
                "rules": [
                    {
                        "apiGroups": ["admissionregistration.k8s.io"],
                        "resources": configurations,
                        "resourceNames": [name],
                        "verbs": verbs,
                    }
                ],
            },
            {
                "apiVersion": rbac,
                "kind": "ClusterRoleBinding",
                "metadata": wide,
                "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": name},
                "subjects": [subject],
            },
        ]
    )
