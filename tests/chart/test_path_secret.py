"""The secret in the webhook's path: no render knows it, the replicas write it, and tenants can read it nowhere.

The chart is rendered without a cluster and applied, as GitOps tools do. The webhook runs beside the API server, which
reaches it through the chart's Service.
"""

import base64
import json
import ssl
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from http.client import HTTPConnection, HTTPSConnection
from pathlib import Path

import pytest
import yaml

from localcluster import Cluster, Result
from localcluster.operators.manifests import redirected, webhook_services
from localcluster.ports import free_ports
from localcluster.waiting import answers_ready, wait_until

from .asking import GPU_POD, try_create
from .conftest import Render
from .helm import CHART, Manifest, helm
from .release import CONFIGURATION, Release
from .test_least_rights import ACCOUNT, kubeconfig_of_the_service_account

SECRET = "0f" * 16
KINDS = {"mutatingwebhookconfiguration": "mutate", "validatingwebhookconfiguration": "validate"}
GIVES_UP = "the server could not find the requested resource"


def rendered(home: Path, *arguments: str) -> str:
    """Return helm's output without a cluster, which remembers no earlier render."""
    command = ("template", "gpu-tiers", str(CHART), "--namespace=gpu-tiers", *arguments)
    answer = helm(*command, home=home, kubeconfig=home / "no-cluster")
    assert not answer.code, answer.stderr
    return answer.stdout


def test_the_defaults_render_without_a_cluster_and_no_two_renders_differ(home: Path) -> None:
    first = rendered(home, "--include-crds")
    assert first == rendered(home, "--include-crds")
    entries = [each for tree in yaml.safe_load_all(first) if tree for each in tree.get("webhooks", ())]
    assert entries
    assert {tuple(each["clientConfig"]["service"]) for each in entries} == {("name", "namespace", "port")}


def test_outside_the_cluster_it_is_a_part_of_the_address(render: Render) -> None:
    chart = render(webhook={"url": f"https://gpu-tiers.example.com/{SECRET}/"})
    urls = {entry["clientConfig"]["url"] for entry in chart.entries().values()}
    assert urls == {f"https://gpu-tiers.example.com/{SECRET}/validate"}


def test_a_certificate_is_asked_of_clients_and_helms_test_knows_that_it_has_none(render: Render) -> None:
    authority = "-----BEGIN CERTIFICATE-----"
    chart = render(webhook={"clientCA": authority, "clientNames": ["kube-apiserver"]})
    (container,) = chart.one("Deployment")["spec"]["template"]["spec"]["containers"]
    assert {"--client-ca=/etc/gpu-tiers/client-ca.crt", "--client-name=kube-apiserver"} <= set(container["args"])
    assert chart.one("ConfigMap", "gpu-tiers")["data"]["client-ca.crt"].strip() == authority
    (asking,) = chart.one("Pod")["spec"]["containers"]
    assert "ONLY_THE_API_SERVER" in [each["name"] for each in asking["env"]]


@dataclass(frozen=True)
class Replica:
    """A `gpu-tiers serve` beside the API server, with the rights of the chart's account."""

    port: int
    metrics_port: int
    log: Path
    process: "subprocess.Popen[bytes] | None" = None

    def started(self, folder: Path, *options: str) -> "Replica":
        command = [str(Path(sys.executable).parent / "gpu-tiers"), "serve", "--host=localhost"]
        command += [f"--policy={folder / 'policy.yaml'}", f"--kubeconfig={folder / 'kubeconfig'}"]
        command += [f"--port={self.port}", f"--metrics-port={self.metrics_port}", f"--identity={self.port}", *options]
        with self.log.open("w") as log:
            return replace(self, process=subprocess.Popen(command, stdout=log, stderr=log))

    def is_ready(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, self.log.read_text()
        return answers_ready(self.metrics_port)


@dataclass(frozen=True)
class Applied:
    """The applied objects, and two replicas; the API server asks the first."""

    cluster: Cluster
    text: str
    replicas: tuple[Replica, ...]

    def apply(self, *how: str) -> None:
        self.cluster.kubectl("apply", *how, "-f", "-", input=self.text)

    def configuration(self, kind: str) -> Manifest:
        return self.cluster.api.get(f"{kind}/{CONFIGURATION}")

    def paths(self) -> dict[str, str]:
        """The path that all entries name, by the webhook that answers there; "" where none is written yet."""
        found = {}
        for kind, webhook in KINDS.items():
            entries = self.configuration(kind)["webhooks"]
            (found[webhook],) = {entry["clientConfig"]["service"].get("path", "") for entry in entries}
        return found

    def written(self) -> dict[str, str]:
        wait_until(lambda: all(self.paths().values()), 30, "paths")
        return self.paths()

    def posted(self, path: str) -> list[int]:
        """Return each replica's answer to something that is no review; 400 means that it was read."""
        secret = self.cluster.api.get("secret/gpu-tiers-tls", "gpu-tiers")
        trust = ssl.create_default_context(cadata=base64.b64decode(secret["data"]["ca.crt"]).decode())
        trust.check_hostname = False
        found = []
        for each in self.replicas:
            connection = HTTPSConnection("localhost", each.port, timeout=10, context=trust)
            connection.request("POST", path, "{}", {"content-type": "application/json"})
            found.append(connection.getresponse().status)
            connection.close()
        return found

    def asked(self) -> Result:
        return try_create(self.cluster, "default", GPU_POD)

    def gives_a_tier(self) -> bool:
        answer = self.asked()
        return not answer.code and "gpu-tiers.dev/tier" in answer.json()["metadata"]["labels"]


@pytest.fixture(scope="module")
def replicas(tmp_path_factory: pytest.TempPathFactory) -> tuple[Replica, ...]:
    folder = tmp_path_factory.mktemp("replicas")
    return tuple(Replica(*free_ports(2), folder / f"log-{number}") for number in range(2))


@pytest.fixture(scope="module")
def applied(cluster: Cluster, home: Path, replicas: tuple[Replica, ...]) -> Iterator[Applied]:
    """The defaults, but in Enforce."""
    folder = replicas[0].log.parent
    trees = [tree for tree in yaml.safe_load_all(rendered(home, "--no-hooks", "--set=mode=Enforce")) if tree]
    services = webhook_services(trees)
    names = {each["metadata"]["name"] for each in services}
    remaining = [each for each in trees if each["kind"] != "Service" or each["metadata"]["name"] not in names]
    text = yaml.safe_dump_all([redirected(each, replicas[0].port) for each in remaining] + services)
    cluster.api.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "gpu-tiers"}})
    installed = Applied(cluster, text, replicas)
    try:
        installed.apply()
        policy = cluster.api.get("configmap/gpu-tiers", "gpu-tiers")["data"]["policy.yaml"]
        (folder / "policy.yaml").write_text(policy)
        (folder / "kubeconfig").write_text(kubeconfig_of_the_service_account(cluster))
        running = tuple(each.started(folder) for each in replicas)
        try:
            for each in running:
                wait_until(each.is_ready, 240, "a replica")
            wait_until(installed.gives_a_tier, 60, "a GPU pod's tier")
            yield replace(installed, replicas=running)
        finally:
            for each in running:
                each.process.kill()
                each.process.wait()
    finally:
        cluster.kubectl("delete", "--ignore-not-found", "--wait=false", "-f", "-", input=text)
        Release(cluster, home).wipe()


@pytest.mark.apiserver
def test_what_was_applied_gets_paths_of_its_own_and_gives_tiers(applied: Applied) -> None:
    paths = applied.written()
    assert applied.gives_a_tier()
    for webhook, path in paths.items():
        assert path.startswith("/")
        assert path.endswith(f"/{webhook}")
        assert len(path) == len(f"/{SECRET}/{webhook}")
        assert applied.posted(path) == [400, 400], "each replica answers there, whichever of them wrote it"


@pytest.mark.apiserver
def test_who_does_not_know_the_path_is_answered_nothing(applied: Applied) -> None:
    paths = applied.written()
    mixed = paths["mutate"].replace("mutate", "validate")
    for path in ("/", "/mutate", "/validate", f"/{SECRET}/validate", paths["validate"] + "/", mixed):
        assert applied.posted(path) == [404, 404], path


@pytest.mark.apiserver
def test_who_may_edit_a_namespace_reads_it_nowhere(applied: Applied, namespace: str) -> None:
    kubectl = applied.cluster.kubectl
    kubectl("create", "rolebinding", "ada", "--clusterrole=edit", "--user=ada", f"--namespace={namespace}")
    asked = (
        ("get", "mutatingwebhookconfigurations", "-o", "yaml"),
        ("get", "validatingwebhookconfigurations", CONFIGURATION, "-o", "yaml"),
        ("get", "deployment", "gpu-tiers", "--namespace=gpu-tiers"),
    )
    assert not kubectl("get", "pods", f"--namespace={namespace}", "--as=ada", check=False).code
    for arguments in asked:
        assert "(Forbidden)" in kubectl(*arguments, "--as=ada", check=False).stderr, arguments
    everything = kubectl("get", "all,configmaps,secrets,events,leases", "--namespace=gpu-tiers", "-o", "yaml").stdout
    for path in applied.written().values():
        secret = path.split("/")[1]
        assert secret not in everything
        assert base64.b64encode(secret.encode()).decode() not in everything
        assert secret not in "".join(each.log.read_text() for each in applied.replicas)


@pytest.mark.apiserver
@pytest.mark.parametrize("how", [(), ("--server-side", "--force-conflicts", "--field-manager=argocd-controller")])
def test_applied_again_it_shows_no_difference_and_keeps_what_the_replicas_wrote(
    applied: Applied, how: tuple[str, ...]
) -> None:
    paths, bundles = applied.written(), [applied.configuration(kind)["webhooks"] for kind in KINDS]
    applied.apply(*how)
    difference = applied.cluster.kubectl("diff", *how, "-f", "-", input=applied.text, check=False)
    assert (difference.code, difference.stdout) == (0, "")
    assert applied.paths() == paths
    assert [applied.configuration(kind)["webhooks"] for kind in KINDS] == bundles


@pytest.mark.apiserver
def test_without_a_path_nothing_is_answered_and_enforce_refuses(applied: Applied) -> None:
    """No replica may write yet: the API server asks at /, and failurePolicy decides."""
    role = applied.cluster.api.get("clusterrole/gpu-tiers")
    reading = json.loads(json.dumps(role))
    for rule in reading["rules"]:
        if rule["apiGroups"] == ["admissionregistration.k8s.io"]:
            rule["verbs"].remove("patch")
    try:
        applied.cluster.kubectl("replace", "-f", "-", input=json.dumps(reading))
        wait_until(lambda: "no" in can_patch(applied), 30, "the right to be gone")
        without_paths(applied)
        wait_until(lambda: GIVES_UP in applied.asked().stderr, 30, "a refusal")
        assert set(applied.paths().values()) == {""}
        for path in ("/", "/mutate", "/validate"):
            assert applied.posted(path) == [404, 404]
        for each in applied.replicas:
            wait_until(lambda: "webhook not registered" in each.log.read_text(), 30, "a line")  # noqa: B023 - at once
    finally:
        applied.cluster.kubectl("replace", "--force", "-f", "-", input=json.dumps(role))
    wait_until(applied.gives_a_tier, 60, "paths, once the right is back")


def can_patch(applied: Applied) -> str:
    question = ("auth", "can-i", "patch", f"mutatingwebhookconfigurations/{CONFIGURATION}", f"--as={ACCOUNT}")
    return applied.cluster.kubectl(*question, check=False).stdout


def without_paths(applied: Applied) -> None:
    """Remove the paths as docs/security.md describes it."""
    kubectl = applied.cluster.kubectl
    found = kubectl("get", *(f"{kind}/{CONFIGURATION}" for kind in KINDS), "-o", "yaml").stdout
    remaining = [line for line in found.splitlines(keepends=True) if " path: /" not in line]
    kubectl("replace", "-f", "-", input="".join(remaining))


@pytest.mark.apiserver
def test_a_replica_that_cannot_read_its_configurations_is_not_ready(applied: Applied, tmp_path: Path) -> None:
    """The replica knows no path, so each review that the Service led to it would get 404."""
    folder = applied.replicas[0].log.parent
    blind = Replica(*free_ports(2), tmp_path / "log").started(folder, "--configuration=of-another")
    try:
        wait_until(lambda: "[+]caches ok" in readiness(blind), 240, "all else to be ready")
        assert "[-]path: the webhook configurations, which name the path of reviews, have not" in readiness(blind)
        assert not blind.is_ready()
    finally:
        blind.process.kill()
        blind.process.wait()


def readiness(replica: Replica) -> str:
    """Return the answer of /readyz, and nothing until the process listens."""
    connection = HTTPConnection("127.0.0.1", replica.metrics_port, timeout=5)
    try:
        connection.request("GET", "/readyz")
        return connection.getresponse().read().decode()
    except OSError:
        return ""
    finally:
        connection.close()


@pytest.mark.apiserver
def test_a_path_that_somebody_read_is_replaced_at_once(applied: Applied) -> None:
    before = applied.written()
    without_paths(applied)
    after = applied.written()
    wait_until(applied.gives_a_tier, 30, "a tier by the new path")
    for webhook, path in after.items():
        assert path != before[webhook]
        wait_until(lambda: applied.posted(path) == [400, 400], 10, "both replicas at the new path")  # noqa: B023
        assert applied.posted(before[webhook]) == [404, 404]


@pytest.mark.apiserver
@pytest.mark.parametrize("kind", KINDS)
def test_of_the_service_the_webhooks_account_may_change_the_secret_path_alone(applied: Applied, kind: str) -> None:
    applied.written()
    refusal = "the webhook's own account may change caBundle and its secret path, and nothing else"
    service = "/webhooks/0/clientConfig/service"

    def patched(op: str, path: str, **value: object) -> str:
        asked = {"form": "json", "user": ACCOUNT, "dry_run": True, "check": False}
        return applied.cluster.api.patch(f"{kind}/{CONFIGURATION}", [{"op": op, "path": path, **value}], **asked).stderr

    assert patched("add", f"{service}/path", value=f"/{SECRET}/{KINDS[kind]}") == ""
    other = next(each for each in KINDS.values() if each != KINDS[kind])
    for path in (f"/{KINDS[kind]}", f"/{SECRET}/{other}", f"/{SECRET}/{KINDS[kind]}/more", f"/x/{KINDS[kind]}"):
        assert refusal in patched("add", f"{service}/path", value=path), path
    for field, value in {"name": "mine", "namespace": "default", "port": 8443}.items():
        assert refusal in patched("replace", f"{service}/{field}", value=value), field
    assert refusal in patched("remove", f"{service}/path")
    assert refusal in patched("replace", "/webhooks/0/clientConfig", value={"url": "https://x.example/"})


@pytest.mark.apiserver
def test_with_certificates_of_others_the_account_may_not_write_their_ca(applied: Applied, render: Render) -> None:
    chart = render(certificates={"source": "cert-manager"})
    applied.cluster.api.apply(chart.one("ValidatingAdmissionPolicy", "gpu-tiers-own-configurations"))
    kind, config = "mutatingwebhookconfiguration", "/webhooks/0/clientConfig"

    def patched(path: str, value: str) -> str:
        asked = {"form": "json", "user": ACCOUNT, "dry_run": True, "check": False}
        change = [{"op": "replace", "path": f"{config}/{path}", "value": value}]
        return applied.cluster.api.patch(f"{kind}/{CONFIGURATION}", change, **asked).stderr

    refusal = "the webhook's own account may change its secret path, and nothing else"
    wait_until(lambda: refusal in patched("caBundle", "Q0E="), 60, "the policy")
    assert patched("service/path", f"/{SECRET}/mutate") == ""
    applied.apply()
    wait_until(lambda: patched("caBundle", "Q0E=") == "", 60, "the policy from before")
