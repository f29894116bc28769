"""Two hundred people at once, fifty GPUs: exactly fifty are let in, however their requests fall together."""

import json
import ssl
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from http.client import HTTPSConnection
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import yaml

from .installed import Installed, gpu_pod

pytestmark = pytest.mark.apiserver

CREATES, GPUS, THREADS = 200, 50, 40


class Client:
    """Creates pods over the API itself: 200 kubectl processes would come one after another on a small machine."""

    def __init__(self, kubeconfig: Path) -> None:
        config = yaml.safe_load(kubeconfig.read_text())
        server, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        self._host = urlsplit(server["server"]).netloc
        self._context = ssl.create_default_context(cafile=server["certificate-authority"])
        if "client-certificate" in user:
            self._context.load_cert_chain(user["client-certificate"], user["client-key"])
        self._headers = {"Content-Type": "application/json", "Authorization": f"Bearer {user.get('token', '')}"}

    def create(self, namespace: str, pods: list[str]) -> list[tuple[int, str]]:
        answers = []
        with closing(HTTPSConnection(self._host, context=self._context, timeout=60)) as connection:
            for name in pods:
                body = json.dumps(gpu_pod(name, tier="gpu-batch"))
                status = 500
                while status >= 500:  # on a busy machine the webhook may be asked too late; that is neither yes nor no
                    connection.request("POST", f"/api/v1/namespaces/{namespace}/pods", body, self._headers)
                    response = connection.getresponse()
                    status, said = response.status, response.read().decode()
                answers.append((status, said))
        return answers


def test_exactly_fifty_of_two_hundred(installed: Installed, namespace: str) -> None:
    tenant = "crowd"
    installed.tenant(tenant, namespace, quotas=[{"tier": "gpu-batch", "gpus": str(GPUS)}])
    try:
        client = Client(installed.cluster.kubeconfig)
        shares = [[f"pod-{number}" for number in range(start, CREATES, THREADS)] for start in range(THREADS)]
        with ThreadPoolExecutor(THREADS) as threads:
            answers = [
                each for part in threads.map(lambda share: client.create(namespace, share), shares) for each in part
            ]
        assert sum(status == 201 for status, _ in answers) == GPUS
        refused = [body for status, body in answers if status != 201]
        assert [body for body in refused if "gpu-batch is at 50 of 50 GPUs; this pod asks for 1" not in body] == []
        installed.eventually(lambda: installed.usage(tenant) == "gpu-batch 50/50", "the usage in the status")
    finally:
        installed.cluster.kubectl("delete", "tenantquota", tenant)
