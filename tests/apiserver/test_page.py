"""The page of a running webhook: a refusal and its sentence, a tenant's use, as a browser would fetch them."""

import http.client
from collections.abc import Iterator
from html import unescape

import pytest

from .installed import Installed, gpu_pod

pytestmark = pytest.mark.apiserver


def page(installed: Installed) -> str:
    connection = http.client.HTTPConnection("127.0.0.1", installed.address.page_port, timeout=10)
    connection.request("GET", "/")
    answer = connection.getresponse()
    assert answer.status == 200
    text = unescape(answer.read().decode())
    connection.close()
    return text


@pytest.fixture
def tenant(installed: Installed, namespace: str) -> Iterator[str]:
    installed.tenant("paged", namespace, quotas=[{"tier": "gpu-batch", "gpus": "2"}])
    yield "paged"
    installed.cluster.kubectl("delete", "tenantquota", "paged")


def test_from_a_refused_pod_to_why(installed: Installed, namespace: str, tenant: str) -> None:
    assert installed.create(gpu_pod("sweep", 2, tier="gpu-batch"), namespace).code == 0
    refused = installed.create(gpu_pod("another", 1, tier="gpu-batch"), namespace)
    assert refused.code != 0
    installed.eventually(lambda: "2 used and 0 reserved of 2 GPUs" in page(installed), "the pod is counted")
    shown = page(installed)
    assert f'<th scope="row">{tenant}</th>' in shown
    assert f"<code>{namespace}/another</code>" in shown
    assert "tenant paged: gpu-batch is at 2 of 2 GPUs; this pod asks for 1." in shown
    assert "gpu-training evicts gpu-serving, gpu-batch, gpu-interactive" in shown
    assert "which leads" in shown
