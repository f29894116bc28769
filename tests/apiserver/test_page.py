"""The page of a running webhook: a refusal and its sentence, a tenant's use, as a browser would fetch them."""

import base64
import http.client
import json
import re
import ssl
from collections.abc import Callable, Iterator
from html import unescape
from pathlib import Path
from socket import gethostname

import httpx
import pytest
import yaml

from installation.local_webhook import Address, start_webhook
from localcluster.ports import free_ports
from tests.unit.page.samples import a_content
from tests.unit.page.test_render import content_of
from webhook.kube.client import Client
from webhook.page.readers import Readers
from webhook.page.routes import page_app

from .asking import page
from .installed import Installed, gpu_pod

pytestmark = pytest.mark.apiserver

Fetch = Callable[[str | None], tuple[int, str]]


@pytest.fixture
def tenant(installed: Installed, namespace: str) -> Iterator[str]:
    with installed.tenant_for("paged", namespace, quotas=[{"tier": "gpu-batch", "gpus": "2"}]) as name:
        yield name


def test_from_a_refused_pod_to_why(installed: Installed, namespace: str, tenant: str) -> None:
    assert installed.create(gpu_pod("sweep", 2, tier="gpu-batch"), namespace).code == 0
    for _ in range(2):
        assert installed.create(gpu_pod("another", 1, tier="gpu-batch"), namespace).code != 0
    counted = re.compile(
        r"2 used, [02] of them by pods without a node, 0 reserved, and 0 reserved for the queue, of 2 GPUs"
    )
    installed.eventually(lambda: bool(counted.search(page(installed))), "the pod is counted")
    shown = page(installed)
    assert f'<th scope="row">{tenant}</th>' in shown
    row = shown.partition(f"<code>{namespace}/Pod/another</code>")[2].partition("</tr>")[0]
    assert 'data-label="Times">2</td>' in row, "who tries again is told once"
    assert "exceeded quota: tenant paged: gpu-batch is at 2 of 2 GPUs; this pod asks for 1." in shown
    assert "gpu-training evicts gpu-serving, gpu-batch, gpu-interactive" in shown
    assert "which leads" in shown


def test_it_shows_the_gpus_of_the_cluster_and_who_waits_for_what(installed: Installed, namespace: str) -> None:
    assert installed.create(gpu_pod("sweep", 2, tier="gpu-batch"), namespace).code == 0
    waits = f"<code>{namespace}/Pod/sweep</code>"
    word = re.compile(r"nodes (are )?available")
    installed.eventually(lambda: bool(word.search(page(installed).partition(waits)[2])), "the scheduler's word")
    shown = page(installed)
    row = shown.partition(waits)[2].partition("</tr>")[0]
    assert all(f">{each}</td>" in row for each in ("gpu-batch", "none", "2", "1")), "tier, tenant, GPUs, pods"
    assert "</strong> free" in shown
    assert "<strong>✓ All is well:</strong> policy" in shown


def test_a_replica_that_does_not_lead_names_the_one_that_does(installed: Installed) -> None:
    installed.eventually(lambda: "which leads" in page(installed), "a leader")
    address = Address(*free_ports(3))
    process = start_webhook(installed.cluster, address, "--identity=second")
    try:
        line = f"See the page of <code>{gethostname()}</code>, which leads."
        installed.eventually(lambda: line in page(installed, address.page_port), "the Lease is read")
        assert "Replica <code>second</code>, which does not lead" in page(installed, address.page_port)
    finally:
        installed.cluster.processes.end(process)


def test_a_prometheus_that_is_not_there_costs_a_line_and_nothing_else(installed: Installed) -> None:
    *ports, nobody = free_ports(4)
    url = f"http://127.0.0.1:{nobody}"
    process = start_webhook(installed.cluster, Address(*ports), "--identity=asking", f"--prometheus-url={url}")
    try:
        line = f"The Prometheus at 127.0.0.1:{nobody} tells nothing: GET /api/v1/query_range: Cannot connect"
        assert line in page(installed, ports[2])
        assert "Not well" not in page(installed, ports[2])
    finally:
        installed.cluster.processes.end(process)


@pytest.fixture
def fetch(installed: Installed) -> Fetch:
    """The page at its TLS port, with a token."""
    secret = installed.get("secret/gpu-tiers-tls", "gpu-tiers")
    trusted = ssl.create_default_context(cadata=base64.b64decode(secret["data"]["ca.crt"]).decode())

    def fetched(token: str | None) -> tuple[int, str]:
        connection = http.client.HTTPSConnection("127.0.0.1", installed.page_tls_port, timeout=10, context=trusted)
        connection.request("GET", "/", headers={"authorization": f"Bearer {token}"} if token else {})
        answer = connection.getresponse()
        status, text = answer.status, unescape(answer.read().decode())
        connection.close()
        return status, text

    return fetched


@pytest.fixture
def reader(installed: Installed, namespace: str) -> Iterator[str]:
    """A token of the namespace's ServiceAccount `reader`, to which a ClusterRole for the page is bound."""
    name = f"page-{namespace}"
    kubectl = installed.cluster.kubectl
    kubectl("create", "clusterrole", name, "--verb=get", "--non-resource-url=/gpu-tiers/page")
    installed.bind(name, name, "reader", namespace, everywhere=True)
    yield token_of(installed, "reader", namespace)
    installed.api.delete(f"clusterrole/{name}", f"clusterrolebinding/{name}")


def token_of(installed: Installed, account: str, namespace: str, *audiences: str) -> str:
    installed.api.create(
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": account}}, namespace, check=False
    )
    return installed.api.token(account, namespace, *audiences)


def test_with_a_token_and_the_right_it_is_read_over_tls(fetch: Fetch, reader: str) -> None:
    status, text = fetch(reader)
    assert (status, "<h1>gpu-tiers</h1>" in text) == (200, True)


def test_everybody_else_reads_what_is_missing(installed: Installed, fetch: Fetch, reader: str, namespace: str) -> None:
    status, text = fetch(None)
    assert (status, "needs a token of this cluster" in text) == (401, True)
    status, text = fetch(f"{reader[:-4]}AAAA")
    assert (status, "does not accept this token" in text) == (401, True)
    status, text = fetch(token_of(installed, "reader", namespace, "elsewhere"))
    assert (status, "is for another audience" in text) == (401, True)
    status, text = fetch(token_of(installed, "somebody", namespace))
    assert status == 403
    assert f'User "system:serviceaccount:{namespace}:somebody" may not read this page' in text


async def test_where_the_api_server_is_away_or_gives_us_no_answer_it_stays_closed(
    installed: Installed, reader: str, namespace: str, tmp_path: Path
) -> None:
    away, without_rights = (yaml.safe_load(installed.cluster.kubeconfig.read_text()) for _ in range(2))
    away["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{free_ports(1)[0]}"
    without_rights["users"][0]["user"] = {"token": token_of(installed, "somebody", namespace)}
    for each in (away, without_rights):
        (tmp_path / "kubeconfig").write_text(json.dumps(each))
        async with await Client.connect(tmp_path / "kubeconfig") as client:
            answer = await asked(Readers(client), reader)
            assert (answer.status_code, "the page stays closed" in answer.text) == (503, True)
    async with await Client.connect(installed.cluster.kubeconfig) as client:
        assert (await asked(Readers(client), reader)).status_code == 200
        assert (await asked(Readers(client, ["gpu-tiers"]), reader)).status_code == 401
        for_us = token_of(installed, "reader", namespace, "gpu-tiers")
        assert (await asked(Readers(client, ["gpu-tiers"]), for_us)).status_code == 200


async def asked(readers: Readers, token: str) -> httpx.Response:
    transport = httpx.ASGITransport(page_app(content_of(a_content()), readers))
    async with httpx.AsyncClient(transport=transport, base_url="https://gpu-tiers.gpu-tiers.svc:8091") as client:
        return await client.get("/", headers={"authorization": f"Bearer {token}"})
