"""Objects that the chart runs inside the cluster, as an API server judges them: fields, rights, pod security."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from localcluster import Cluster

from .asking import pod, try_create
from .conftest import Render, wiped
from .helm import Manifest
from .release import CONFIGURATION, Release

pytestmark = pytest.mark.apiserver


@pytest.fixture(scope="module")
def release(cluster: Cluster, home: Path) -> Iterator[Release]:
    with wiped(Release(cluster, home)) as release:
        release.install(webhook={"url": ""}, mode="Enforce")
        yield release


def test_everything_that_runs_is_accepted_by_the_api_server(release: Release) -> None:
    deployment = release.get("deployment", "gpu-tiers")
    assert deployment["spec"]["strategy"]["rollingUpdate"] == {"maxSurge": 1, "maxUnavailable": 0}
    account = "--as=system:serviceaccount:gpu-tiers:gpu-tiers"
    for question, answer in {
        "update tenantquotas --subresource=status": "yes",
        "patch tenantquotas --subresource=status": "no",
        "update tenantquotas": "no",
        "update leases/gpu-tiers --namespace=gpu-tiers": "yes",
        "update leases/another --namespace=gpu-tiers": "no",
        "create leases --namespace=gpu-tiers": "yes",
        "create leases --namespace=kube-system": "no",
        "list pods": "yes",
        "get jobs.batch": "yes",
        "list secrets --namespace=gpu-tiers": "no",
        "get secret/gpu-tiers-tls --namespace=gpu-tiers": "yes",
        "get secret/another --namespace=gpu-tiers": "no",
        f"patch validatingwebhookconfigurations/{CONFIGURATION}": "yes",
        "patch validatingwebhookconfigurations/another": "no",
        "patch pods": "yes",
        "update pods": "no",
    }.items():
        said = release.cluster.kubectl("auth", "can-i", *question.split(), account, check=False).stdout
        assert said.strip() == answer, question


def pod_of(workload: Manifest) -> Manifest:
    template = workload["spec"]["template"]
    return template | {"apiVersion": "v1", "kind": "Pod", "metadata": template["metadata"] | {"name": "tried"}}


def test_its_own_pods_meet_the_restricted_standard(release: Release, render: Render) -> None:
    restricted = "pod-security.kubernetes.io/enforce=restricted"
    release.cluster.kubectl("label", "namespace", "gpu-tiers", restricted)
    chart = render()
    release.cluster.api.apply(chart.one("ServiceAccount", "gpu-tiers-open-gates"))
    for manifest in (pod_of(chart.one("Deployment")), chart.one("Pod"), pod_of(chart.one("Job"))):
        answer = try_create(release.cluster, "gpu-tiers", manifest)
        assert not answer.code, answer.stderr
    refused = try_create(release.cluster, "gpu-tiers", pod())
    assert "violates PodSecurity" in refused.stderr
    release.cluster.api.label("namespace/gpu-tiers", {"pod-security.kubernetes.io/enforce": None})
    release.cluster.api.delete("serviceaccount/gpu-tiers-open-gates", namespace="gpu-tiers")


def test_an_upgrade_and_a_rollback_leave_what_the_replicas_wrote(release: Release) -> None:
    kinds = ("mutatingwebhookconfiguration", "validatingwebhookconfiguration")

    def entries() -> list[list[Manifest]]:
        return [release.get(kind, CONFIGURATION)["webhooks"] for kind in kinds]

    for kind, found in zip(kinds, entries(), strict=True):
        written = [
            {"op": "add", "path": f"/webhooks/{index}/clientConfig/{field}", "value": value}
            for index in range(len(found))
            for field, value in (("caBundle", "Q0E="), ("service/path", f"/{'0' * 32}/mutate"))
        ]
        release.cluster.api.patch(f"{kind}/{CONFIGURATION}", written, form="json")
    before = entries()
    release.upgrade(webhook={"url": ""}, mode="Enforce", logLevel="debug")
    assert entries() == before
    assert not release.run("rollback", "1").code
    assert entries() == before
