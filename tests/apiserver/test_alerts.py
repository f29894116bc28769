"""A real Prometheus with the chart's alerts beside a running webhook: silent while all is well, loud for a cause."""

from collections.abc import Iterator

import pytest

from installation.readiness import wait_for_webhook
from tests.alerts.server import Prometheus
from webhook.server.page_ports import AskedPrometheus
from webhook.server.settings import PrometheusServer

from .installed import Installed, gpu_pod

pytestmark = [pytest.mark.apiserver, pytest.mark.release]

CONFIGURATION = "validatingwebhookconfiguration/zz-gpu-tiers"


@pytest.fixture(scope="module")
def prometheus(installed: Installed) -> Iterator[Prometheus]:
    running = Prometheus(installed.cluster, installed.address.metrics_port)
    installed.eventually(running.scrapes, "the first scrape")
    yield running
    running.end()


def silent(installed: Installed, prometheus: Prometheus) -> None:
    """None of the alerts fires, or none soon."""
    installed.eventually(prometheus.scrapes, "a scrape")
    installed.eventually(lambda: not prometheus.firing(), "silence")


def summary_of(installed: Installed, prometheus: Prometheus, alert: str) -> str:
    """The summary of an alert, once it fires."""
    installed.eventually(lambda: alert in prometheus.firing(), alert)
    return prometheus.firing()[alert]


def test_a_tenant_that_fills_its_quota(installed: Installed, namespace: str, prometheus: Prometheus) -> None:
    silent(installed, prometheus)
    installed.tenant(namespace, namespace, quotas=[{"tier": "gpu-batch", "gpus": "2"}])
    try:
        assert installed.create(gpu_pod("sweep", 2, tier="gpu-batch"), namespace).code == 0
        summary = summary_of(installed, prometheus, "GpuTiersTenantNearlyFull")
        assert summary == f"Tenant {namespace} uses 100% of a quota row."
    finally:
        installed.api.delete(f"tenantquota/{namespace}")


async def test_the_page_finds_there_what_a_running_webhook_shows(prometheus: Prometheus) -> None:
    """Each outcome of an eviction begins at 0, so less than ten minutes show times without one."""
    server = PrometheusServer(prometheus.url, {"job": "gpu-tiers"}, None, None)
    day = await AskedPrometheus(server).day()
    assert not day.problem
    assert day.seen
    assert not day.evicted
    elsewhere = PrometheusServer(prometheus.url, {"job": "another"}, None, None)
    assert (await AskedPrometheus(elsewhere).day()).problem == 'no metric of gpu-tiers{job="another"}'


def test_a_webhook_configuration_that_somebody_deleted(installed: Installed, prometheus: Prometheus) -> None:
    silent(installed, prometheus)
    kubectl = installed.cluster.kubectl
    before = installed.api.get(CONFIGURATION)
    kubectl("delete", CONFIGURATION)
    try:
        summary = summary_of(installed, prometheus, "GpuTiersNotRegistered")
        assert summary == "ValidatingWebhookConfiguration of gpu-tiers is missing or has no path."
    finally:
        del before["metadata"]["resourceVersion"], before["metadata"]["uid"]
        installed.api.create(before)
        wait_for_webhook(installed.cluster)


def test_a_webhook_that_is_gone(installed: Installed, prometheus: Prometheus) -> None:
    silent(installed, prometheus)
    installed.kill()
    try:
        assert summary_of(installed, prometheus, "GpuTiersAbsent") == "No replica of gpu-tiers is scraped."
    finally:
        installed.restart()
        wait_for_webhook(installed.cluster)


def test_a_policy_with_a_mistake(installed: Installed, prometheus: Prometheus) -> None:
    silent(installed, prometheus)
    policy = (installed.cluster.folder / "policy.yaml").read_text()
    installed.write_policy(policy + "\nteirs: []\n", result="failure")
    try:
        where = f"127.0.0.1:{installed.address.metrics_port}"
        assert (
            summary_of(installed, prometheus, "GpuTiersPolicyNotTaken")
            == f"The policy of {where} is not active as it should be."
        )
    finally:
        installed.write_policy(policy)
    silent(installed, prometheus)
