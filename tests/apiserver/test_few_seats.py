"""A create that waits for the webhook holds a seat of the API server; the webhook's writes have seats of their own."""

import json
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPSConnection
from pathlib import Path
from ssl import create_default_context
from urllib.parse import urlsplit

import pytest

from installation.helm import CHART, RELEASE, helm
from installation.local_webhook import install_chart, start_webhook
from installation.readiness import wait_for_webhook
from localcluster import ControlPlane
from localcluster.credentials import kubeconfig
from localcluster.waiting import wait_until
from tests.builders import tenant_quota

from .faults.run import account
from .installed import gpu_pod

pytestmark = pytest.mark.apiserver

SEATS = ("--max-requests-inflight=16", "--max-mutating-requests-inflight=8", "--request-timeout=60s")
"""An API server has 600 unless its command line says otherwise."""
CREATES = 40
TEAM = "team"


class FewSeats:
    """A control plane with few seats, and gpu-tiers beside it under the ServiceAccount that the chart makes for it."""

    def __init__(self, cluster: ControlPlane) -> None:
        self.cluster = cluster
        cluster.apply(json.dumps(account("default")))
        self._server = cluster.kubectl("config", "view", "-o=jsonpath={.clusters[0].cluster.server}").stdout
        address = install_chart(cluster)
        cluster.apply(self._rendered("rbac"))
        file = cluster.folder / "gpu-tiers.kubeconfig"
        file.write_text(kubeconfig(self._server, self._authority, self.token(RELEASE, RELEASE)))
        self.webhook = start_webhook(cluster, address, f"--kubeconfig={file}")
        wait_for_webhook(cluster)
        self._add_team()

    @property
    def _authority(self) -> Path:
        return self.cluster.folder / "tls" / "apiserver.crt"

    def _rendered(self, template: str) -> str:
        """A template of the chart, as for a webhook that runs in the cluster."""
        show = f"--show-only=templates/{template}.yaml"
        command = ("template", RELEASE, str(CHART), f"--namespace={RELEASE}", "--dry-run=server")
        return helm(self.cluster, *command, show)

    def _add_team(self) -> None:
        """A tenant whose ServiceAccount may create pods."""
        kubectl, there = self.cluster.kubectl, f"--namespace={TEAM}"
        self.cluster.api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": TEAM}})
        self.cluster.apply(json.dumps(account(TEAM)))
        kubectl("create", "role", TEAM, there, "--verb=create", "--resource=pods")
        kubectl("create", "rolebinding", TEAM, there, f"--role={TEAM}", f"--serviceaccount={TEAM}:default")
        self.cluster.apply(json.dumps(tenant_quota(TEAM, TEAM, quotas=[{"gpus": "1000"}])))
        self.cluster.api.wait_for("Exact", f"tenantquota/{TEAM}")

    def token(self, namespace: str, account: str) -> str:
        """Return a token of a ServiceAccount."""
        return self.cluster.api.token(account, namespace)

    def add_flow_schema(self) -> None:
        """Add the chart's, and wait until it is active for the webhook."""
        self.cluster.apply(self._rendered("flowschema"))
        uid = self.cluster.kubectl("get", "flowschema", RELEASE, "-o=jsonpath={.metadata.uid}").stdout
        token = self.token(RELEASE, RELEASE)
        path = f"/apis/gpu-tiers.dev/v1alpha1/tenantquotas/{TEAM}"
        wait_until(lambda: self._ask("GET", path, token)[2] == uid, 30, "the FlowSchema")

    def create_at_once(self) -> Counter[int]:
        """Create pods, all at the same moment, as the team; how often each status was answered."""
        path, token = f"/api/v1/namespaces/{TEAM}/pods", self.token(TEAM, "default")
        tree = gpu_pod("x", tier="gpu-batch")
        tree["metadata"] |= {"name": None, "generateName": "pod-"}
        with ThreadPoolExecutor(CREATES) as threads:
            answers = list(threads.map(lambda _: self._ask("POST", path, token, json.dumps(tree)), range(CREATES)))
        print(*{text for status, text, _ in answers if status != 201}, sep="\n")
        return Counter(status for status, _, _ in answers)

    def _ask(self, method: str, path: str, token: str, body: str = "") -> tuple[int, str, str | None]:
        """The status, the body, and the uid of the FlowSchema that the request fell under."""
        context = create_default_context(cafile=str(self._authority))
        connection = HTTPSConnection(urlsplit(self._server).netloc, context=context, timeout=60)
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        found = answer.status, answer.read().decode(), answer.headers.get("X-Kubernetes-PF-FlowSchema-UID")
        connection.close()
        return found


@pytest.fixture(scope="module")
def few_seats(bare: ControlPlane) -> Iterator[FewSeats]:
    """No other has so few seats."""
    bare.restart_apiserver(*SEATS)
    made = FewSeats(bare)
    yield made
    bare.processes.end(made.webhook)
    bare.restart_apiserver()


def test_creates_that_hold_all_seats_wait_for_the_write_that_waits_for_a_seat(few_seats: FewSeats) -> None:
    assert few_seats.create_at_once()[201] < CREATES


def test_with_the_chart_s_flow_schema_all_creates_are_answered(few_seats: FewSeats) -> None:
    few_seats.add_flow_schema()
    assert few_seats.create_at_once() == {201: CREATES}
