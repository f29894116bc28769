"""Two replicas start at once where no certificate is yet: processes as the chart runs them, on a real API server."""

import ssl
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml
from cryptography import x509

from installation.local_webhook import Address, serve
from localcluster.ports import free_ports
from localcluster.processes import Process
from localcluster.waiting import answers_ready, wait_until

from . import installed, test_certificates

pytestmark = pytest.mark.apiserver

REPLICAS = 2
SECONDS = 240


@dataclass(frozen=True)
class Replica:
    """A process and its two ports."""

    address: Address
    process: Process


@pytest.fixture
def secret(installed: installed.Installed, namespace: str) -> Iterator[test_certificates.Installed]:
    """An empty Secret, and two configurations that trust nobody yet, beside the installation of all tests."""
    made = test_certificates.Installed(installed.cluster, namespace, f"zz-{uuid.uuid4().hex[:8]}")
    made.cluster.api.apply(*yaml.safe_load_all(test_certificates.account(made.name, namespace)))
    made.apply_configurations()
    yield made
    kinds = (*test_certificates.KINDS, "clusterrole", "clusterrolebinding")
    made.cluster.api.delete(*(f"{kind}/{made.name}" for kind in kinds))


def lease_of_another(namespace: str) -> dict[str, object]:
    """Held for as long as a test takes."""
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    spec = {"holderIdentity": "another", "leaseDurationSeconds": 3600, "acquireTime": now, "renewTime": now}
    metadata = {"name": "gpu-tiers", "namespace": namespace}
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec}


@pytest.fixture
def replicas(secret: test_certificates.Installed) -> Iterator[list[Replica]]:
    """Started before any of them is ready; they share the Secret. Neither leads: the accounts have another leader."""
    cluster = secret.cluster
    shared = [f"--namespace={secret.namespace}", f"--configuration={secret.name}"]
    cluster.api.apply(lease_of_another(secret.namespace))
    addresses = [Address(*free_ports(3)) for _ in range(REPLICAS)]
    started = [
        Replica(each, cluster.processes.start(f"replica-{number}", [*serve(cluster, each), *shared]))
        for number, each in enumerate(addresses)
    ]
    yield started
    for each in started:
        cluster.processes.end(each.process)


def test_both_serve_one_certificate_of_one_ca_that_both_configurations_trust(
    secret: test_certificates.Installed, replicas: list[Replica], tmp_path: Path
) -> None:
    for each in replicas:
        wait_until(lambda: answers_ready(each.address.metrics_port), SECONDS, "a replica")  # noqa: B023 - called at once
    data = secret.secret()
    assert len(x509.load_pem_x509_certificates(data["ca.crt"])) == 1
    (tmp_path / "ca.crt").write_bytes(data["ca.crt"])
    wait_until(lambda: secret.everywhere() == {data["ca.crt"]}, SECONDS, "the caBundle")
    for each in replicas:
        assert served(each.address.port, tmp_path / "ca.crt") == data["tls.crt"]
    assert secret.secret() == data
    assert sum(each.process.log.read_text().count("certificate written") for each in replicas) == 1


def served(port: int, authority: Path) -> bytes:
    """The certificate that a client gets which trusts this CA alone."""
    text = ssl.get_server_certificate(("127.0.0.1", port), ca_certs=str(authority), timeout=5)
    return text.encode()
