"""Reviews that a pod of the cluster makes up and posts to the webhook: they book nothing, and are told to nobody."""

import base64
import http.client
import json
import ssl
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from installation.readiness import wait_for_webhook
from localcluster import Cluster, ControlPlane

from .installed import Installed, Tree, gpu_pod

pytestmark = pytest.mark.apiserver


def tls_of(cluster: Cluster) -> ssl.SSLContext:
    """Return the TLS context of a client that verifies the webhook."""
    secret = cluster.api.get("secret/gpu-tiers-tls", "gpu-tiers")
    return ssl.create_default_context(cadata=base64.b64decode(secret["data"]["ca.crt"]).decode())


def posted(port: int, tls: ssl.SSLContext, path: str, review: Tree) -> int:
    """The HTTP status of the answer."""
    connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=10, context=tls)
    try:
        connection.request("POST", path, json.dumps(review), {"content-type": "application/json"})
        return connection.getresponse().status
    finally:
        connection.close()


def review_of(pod: Tree, namespace: str) -> Tree:
    """Return the review that the API server would send for a pod that somebody creates."""
    kind = {"group": "", "version": "v1", "kind": "Pod"}
    request = {
        "uid": str(uuid.uuid4()),
        "kind": kind,
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "name": pod["metadata"]["name"],
        "namespace": namespace,
        "operation": "CREATE",
        "userInfo": {"username": "ada@example.com", "groups": ["system:authenticated"]},
        "object": pod | {"metadata": pod["metadata"] | {"uid": str(uuid.uuid4()), "namespace": namespace}},
        "dryRun": False,
    }
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}


def made_up(installed: Installed, namespace: str, name: str, gpus: int) -> Tree:
    """A review of a pod that mutate has been at, as whoever may run `kubectl create --dry-run=server` can have it."""
    pod = gpu_pod(name, 1, tier="gpu-batch")
    seen: Tree = json.loads(installed.create(pod, namespace, dry_run=True).stdout)
    asked = {"nvidia.com/gpu": str(gpus)}
    seen["spec"]["containers"][0]["resources"] = {"limits": asked, "requests": asked}
    return review_of(seen, namespace)


@pytest.fixture
def victim(installed: Installed, namespace: str) -> Iterator[str]:
    """A tenant of a name of its own, for events outlive it."""
    name = f"of-{namespace}"
    installed.tenant(name, namespace, quotas=[{"tier": "gpu-batch", "gpus": "4"}])
    yield name
    installed.api.delete(f"tenantquota/{name}")


def test_without_the_path_they_are_not_found_and_with_it_they_would_have_counted(
    installed: Installed, namespace: str, victim: str
) -> None:
    tls, port, secret = tls_of(installed.cluster), installed.address.port, installed.address.secret
    fits, refused, known = (
        made_up(installed, namespace, name, gpus) for name, gpus in (("fits", 4), ("refused", 5), ("known", 6))
    )

    def messages() -> list[str]:
        selector = f"--field-selector=involvedObject.name={victim},type=Warning"
        found = installed.cluster.kubectl("get", "events", "--namespace=default", selector, "--output=json")
        return [each["message"] for each in found.json()["items"]]

    before = installed.metric("gpu_tiers_reviews_total")
    for review in (fits, refused):
        for path in ("/mutate", "/validate", f"/{'0' * 32}/validate"):
            assert posted(port, tls, path, review) == 404
    assert installed.metric("gpu_tiers_reviews_total") == before
    assert installed.metric("gpu_tiers_http_answers_total", path="other", code="404") >= 6

    # Somebody who knows the path is believed: a refusal that nobody asked for, and GPUs that nobody uses.
    assert posted(port, tls, f"/{secret}/validate", known) == 200
    installed.eventually(lambda: bool(messages()), "an event about a refusal")
    assert ["asks for 6" in each for each in messages()] == [True]
    assert posted(port, tls, f"/{secret}/validate", fits) == 200
    installed.eventually(lambda: "+4" in installed.usage(victim), "the booking")
    assert secret not in installed.log()


@pytest.fixture
def asks_for_a_certificate(installed: Installed, authority: Path) -> Iterator[Installed]:
    """The webhook that takes only callers with the name kube-apiserver in a certificate of the clients' CA."""
    if not isinstance(installed.cluster, ControlPlane):
        pytest.skip("the API server of this cluster shows no certificate of the tests'")
    installed.change_leader(f"--client-ca={authority / 'ca.crt'}", "--client-name=kube-apiserver")
    wait_for_webhook(installed.cluster)
    yield installed
    installed.change_leader()


def test_with_a_ca_of_clients_the_path_alone_opens_nothing(
    asks_for_a_certificate: Installed, authority: Path, namespace: str
) -> None:
    cluster, port = asks_for_a_certificate.cluster, asks_for_a_certificate.address.port
    review = review_of(gpu_pod("made-up", tier="gpu-batch"), namespace)
    path = f"/{asks_for_a_certificate.address.secret}/validate"
    for certificate in (None, "kubelet"):
        tls = tls_of(cluster)
        if certificate:
            tls.load_cert_chain(authority / f"{certificate}.pem")
        with pytest.raises((ssl.SSLError, ConnectionError)):
            posted(port, tls, path, review)
    tls = tls_of(cluster)
    tls.load_cert_chain(authority / "kube-apiserver.pem")
    assert posted(port, tls, path, review) == 200


def test_the_refusal_of_an_outage_shows_the_path(installed: Installed, namespace: str) -> None:
    """docs/security.md therefore says to make a new path afterwards, and names the stronger protection."""
    installed.kill()
    try:
        answer = installed.create(gpu_pod("unlucky"), namespace)
    finally:
        installed.restart()
    assert f"/{installed.address.secret}/validate" in answer.stderr
