"""The secret in the webhook's path: one in all places, kept by upgrades, and for tenants nowhere to be read."""

import base64
from collections.abc import Iterator
from pathlib import Path

import pytest

from localcluster import Cluster

from .conftest import Refuse, Render, wiped
from .helm import SECRET
from .release import CONFIGURATION, Release

pytestmark = pytest.mark.apiserver

HERE = {"webhook": {"url": ""}}
"""The webhook runs in the cluster; in Audit nobody waits for its pods."""


@pytest.fixture(scope="module")
def release(cluster: Cluster, home: Path, namespace: str) -> Iterator[Release]:
    """The chart as anybody installs it, and ada, who may edit one namespace."""
    with wiped(Release(cluster, home)) as release:
        release.install(**HERE)
        cluster.kubectl("create", "rolebinding", "ada", "--clusterrole=edit", "--user=ada", f"--namespace={namespace}")
        yield release


def secret_of(release: Release) -> str:
    """The one secret that the Secret holds, and that all entries name."""
    stored = release.get("secret", "gpu-tiers-path")["data"]["path"]
    secret = base64.b64decode(stored).decode()
    for kind in ("mutating", "validating"):
        entries = release.get(f"{kind}webhookconfiguration", CONFIGURATION)["webhooks"]
        paths = {entry["clientConfig"]["service"]["path"] for entry in entries}
        assert paths == {f"/{secret}/{'mutate' if kind == 'mutating' else 'validate'}"}
    return secret


def checksum(release: Release) -> str:
    """Return the checksum that makes new pods when the secret changes."""
    template = release.get("deployment", "gpu-tiers")["spec"]["template"]
    return str(template["metadata"]["annotations"]["checksum/callers"])


def test_it_is_random_and_an_upgrade_and_a_rollback_keep_it(release: Release) -> None:
    secret, before = secret_of(release), checksum(release)
    assert len(secret) == 32
    assert secret not in before
    release.upgrade(**HERE, logLevel="debug")
    assert (secret_of(release), checksum(release)) == (secret, before)
    assert not release.run("rollback", "1").code
    assert (secret_of(release), checksum(release)) == (secret, before)


def test_who_may_edit_a_namespace_reads_it_nowhere(release: Release, namespace: str) -> None:
    asked = (
        ("get", "secret", "gpu-tiers-path", "--namespace=gpu-tiers"),
        ("get", "deployment", "gpu-tiers", "--namespace=gpu-tiers"),
        ("get", "mutatingwebhookconfigurations", "-o", "yaml"),
        ("get", "validatingwebhookconfigurations", CONFIGURATION, "-o", "yaml"),
    )
    assert not release.cluster.kubectl("get", "pods", f"--namespace={namespace}", "--as=ada", check=False).code
    for arguments in asked:
        answer = release.cluster.kubectl(*arguments, "--as=ada", check=False)
        assert "(Forbidden)" in answer.stderr, arguments
        assert secret_of(release) not in answer.stdout


def test_a_new_one_comes_with_new_pods(release: Release) -> None:
    """After it was read by somebody: delete the Secret, and upgrade."""
    secret, before = secret_of(release), checksum(release)
    release.cluster.api.delete("secret/gpu-tiers-path", namespace="gpu-tiers")
    release.upgrade(**HERE)
    assert secret_of(release) != secret
    assert checksum(release) != before


def test_one_of_your_own_stays_when_the_value_goes(release: Release) -> None:
    release.upgrade(webhook={"url": "", "pathSecret": SECRET})
    assert secret_of(release) == SECRET
    release.upgrade(**HERE)
    assert secret_of(release) == SECRET


def test_the_policy_for_the_network_opens_the_port_where_this_api_server_listens(release: Release) -> None:
    port = {"name": "https", "port": 2040, "protocol": "TCP"}
    listening = {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {"name": "kubernetes", "namespace": "default"},
        "addressType": "IPv4",
        "endpoints": [{"addresses": ["192.0.2.7"]}],
        "ports": [port],
    }
    release.cluster.api.apply(listening)
    release.upgrade(**HERE)
    release.cluster.api.delete("endpointslice/kubernetes", namespace="default")
    rules = release.get("networkpolicy", "gpu-tiers")["spec"]["egress"]
    assert 2040 in {port["port"] for rule in rules for port in rule["ports"]}


def test_without_a_cluster_helm_asks_for_it_so_that_no_two_renders_differ(refuse: Refuse, render: Render) -> None:
    said = refuse(webhook={"pathSecret": ""})
    assert "webhook.pathSecret: is required where helm can't look into the cluster" in said
    assert "--set webhook.pathSecret=$(openssl rand -hex 16)" in said
    assert "pathSecret: Does not match pattern" in refuse(webhook={"pathSecret": "guessed"})
    assert render(webhook={"pathSecret": SECRET}) == render(webhook={"pathSecret": SECRET})


def test_outside_the_cluster_it_is_in_the_address_or_behind_it(render: Render) -> None:
    for webhook in (
        {"url": f"https://gpu-tiers.example.com/{SECRET}"},
        {"url": "https://gpu-tiers.example.com", "pathSecret": SECRET},
    ):
        chart = render(webhook=webhook)
        urls = {entry["clientConfig"]["url"] for entry in chart.entries().values()}
        assert urls == {f"https://gpu-tiers.example.com/{SECRET}/validate"}
        assert "gpu-tiers-path" not in [each["metadata"]["name"] for each in chart.of("Secret")]


def test_a_certificate_is_asked_of_clients_and_helms_test_knows_that_it_has_none(render: Render) -> None:
    authority = "-----BEGIN CERTIFICATE-----"
    chart = render(webhook={"clientCA": authority, "clientNames": ["kube-apiserver"]})
    (container,) = chart.one("Deployment")["spec"]["template"]["spec"]["containers"]
    assert {"--client-ca=/etc/gpu-tiers/client-ca.crt", "--client-name=kube-apiserver"} <= set(container["args"])
    assert chart.one("ConfigMap", "gpu-tiers")["data"]["client-ca.crt"].strip() == authority
    (asking,) = chart.one("Pod")["spec"]["containers"]
    assert "ONLY_THE_API_SERVER" in [each["name"] for each in asking["env"]]
