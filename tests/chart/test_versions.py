"""Upgrades from the first chart over two versions, and back: what people made and what the webhook wrote stays.

versions/first is the chart as its first commit had it. The next version is today's chart
with a value that is new and needed.
"""

import base64
import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from localcluster import Cluster

from .asking import pod
from .conftest import wiped
from .helm import CHART, Answer, Manifest
from .release import CONFIGURATION, DEAD, NAME, OTHER, Release
from .test_install import ALPHA, classes_of

pytestmark = pytest.mark.apiserver

FIRST = Path(__file__).parent / "versions" / "first"
TRUST = base64.b64encode(b"a CA").decode()
KEEPING = "--reset-then-reuse-values"
VALUES = {"webhook": {"url": DEAD}, "tenants": [ALPHA], "exemptNamespaces": ["storage"]}
STATUS = {"usage": [{"tier": "gpu-training", "hard": "6", "used": "4"}]}


@pytest.fixture(scope="module")
def next_chart(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Version 0.2.0: the same, with a value that it needs and that releases of before don't have."""
    chart = tmp_path_factory.mktemp("next") / "gpu-tiers"
    shutil.copytree(CHART, chart)
    about = yaml.safe_load((chart / "Chart.yaml").read_text())
    (chart / "Chart.yaml").write_text(yaml.safe_dump(about | {"version": "0.2.0", "appVersion": "0.2.0"}))
    schema = json.loads((chart / "values.schema.json").read_text())
    schema["properties"]["novelty"] = {"type": "integer"}
    (chart / "values.schema.json").write_text(json.dumps(schema))
    for name, line in (("values.yaml", "novelty: 7"), ("files/needed_values.yaml", "novelty: 7")):
        with (chart / name).open("a") as file:
            file.write(f"\n{line}\n")
    return str(chart)


@pytest.fixture(scope="module")
def release(cluster: Cluster, home: Path, namespace: str) -> Iterator[Release]:
    """The first chart with a tenant, a pod that runs in a tier, and what the webhook writes."""
    with wiped(Release(cluster, home)) as release:
        answer = release.run("install", str(FIRST), "--create-namespace", **VALUES)
        assert not answer.code, answer.stderr
        running = pod(priorityClassName="gpu-training") | {"metadata": {"name": "running", "namespace": namespace}}
        cluster.api.apply(running)
        written_by_the_webhook(cluster)
        yield release
        cluster.kubectl("delete", "pod", "running", f"--namespace={namespace}", "--now")


def written_by_the_webhook(cluster: Cluster) -> None:
    secret = json.dumps({"data": {"ca.crt": TRUST}})
    cluster.kubectl("patch", "secret", "gpu-tiers-tls", f"--namespace={NAME}", "-p", secret)
    for kind, entry in (("mutating", "pods.mutate.gpu-tiers.dev"), ("validating", "pods.validate.gpu-tiers.dev")):
        trusting = json.dumps({"webhooks": [{"name": entry, "clientConfig": {"caBundle": TRUST}}]})
        cluster.kubectl("patch", f"{kind}webhookconfiguration", CONFIGURATION, "-p", trusting)
    status = json.dumps({"status": STATUS})
    cluster.kubectl("patch", "tenantquota", "alpha", "--subresource=status", "--type=merge", "-p", status)


def unchanged(release: Release, namespace: str) -> dict[str, Any]:
    """Return what an upgrade may not touch: identities, the tenant with its charges, certificates, the running pod."""
    tenant = release.get("tenantquota", "alpha")
    running = release.cluster.api.get("pod/running", namespace)
    return {
        "tenant": (tenant["metadata"]["uid"], tenant["spec"]["quotas"], tenant["status"]),
        "classes": {each["metadata"]["uid"] for each in release.get("priorityclass")["items"]},
        "secret": release.get("secret", "gpu-tiers-tls")["data"],
        "trusted": release.entries()["pods.validate.gpu-tiers.dev"]["clientConfig"]["caBundle"],
        "pod": (running["metadata"]["uid"], running["spec"]["priority"]),
    }


def test_two_upgrades_and_two_ways_back_keep_tenants_classes_certificates_and_pods(
    release: Release, namespace: str, next_chart: str
) -> None:
    before = unchanged(release, namespace)
    assert before["tenant"][2] == STATUS
    assert before["trusted"] == TRUST
    for chart in (str(CHART), next_chart):
        answer = release.run("upgrade", chart, KEEPING)
        assert not answer.code, answer.stderr
        assert unchanged(release, namespace) == before
        (exempt,) = release.entries()["pods.validate.gpu-tiers.dev"]["namespaceSelector"]["matchExpressions"]
        assert exempt["values"] == [NAME, "storage"], "the values of the first installation"
    for back in (("rollback", "1"), ("upgrade", str(CHART), KEEPING), ("upgrade", str(FIRST), KEEPING)):
        answer = release.run(*back)
        assert not answer.code, answer.stderr
        assert unchanged(release, namespace) == before


def test_values_of_an_older_chart_are_refused_with_the_option_that_helps(release: Release, next_chart: str) -> None:
    answer = release.run("upgrade", next_chart, "--reuse-values")
    assert answer.code
    assert "ports.webhook: is missing or null; write for example --set ports.webhook=9443" in answer.stderr
    assert "novelty: is missing or null" in answer.stderr
    assert f"use {KEEPING}" in answer.stderr


def test_a_second_release_is_refused_with_the_first_ones_name(release: Release) -> None:
    refusal = release.try_install(OTHER)
    assert refusal.code
    said = "the release gpu-tiers in namespace gpu-tiers is gpu-tiers already (ValidatingWebhookConfiguration"
    assert f"{said} {CONFIGURATION}). Two of them would charge each GPU pod twice" in refusal.stderr
    assert f"helm uninstall {NAME} -n {NAME}" in refusal.stderr
    assert "zz-other-gpu-tiers" not in release.names("validatingwebhookconfiguration")
    assert classes_of(release)


def test_a_release_may_give_its_objects_another_name(release: Release) -> None:
    renamed = ("--set=fullnameOverride=renamed", "--dry-run=server")
    answer = release.run("upgrade", str(CHART), KEEPING, *renamed)
    assert not answer.code, answer.stderr
    assert "name: zz-renamed" in answer.stdout


def test_what_the_webhook_wrote_is_no_difference_to_whoever_compares_with_git(
    release: Release, template: Callable[[Manifest], Answer]
) -> None:
    """Argo CD and Flux compare by a dry run at the server."""
    answer = release.run("upgrade", str(CHART), KEEPING)
    assert not answer.code, answer.stderr
    rendered = template(VALUES).stdout
    diff = ("diff", "--server-side", "--force-conflicts", "--field-manager=gitops", "-f", "-")
    compared = release.cluster.kubectl(*diff, input=rendered, check=False)
    if compared.code:  # the API server may have written a status between diff's two reads
        compared = release.cluster.kubectl(*diff, input=rendered, check=False)
    assert (compared.code, compared.stdout) == (0, "")


@pytest.mark.release
def test_helm_4_takes_over_what_helm_3_installed_and_keeps_the_same(
    release: Release, namespace: str, home: Path, helm_4: str
) -> None:
    """Helm 4 applies at the server where it installed; what Helm 3 installed it upgrades as Helm 3 does."""
    before = unchanged(release, namespace)
    newer = Release(release.cluster, home, helm_4)
    for options in ((), ("--server-side=true", "--force-conflicts")):
        answer = newer.run("upgrade", str(CHART), KEEPING, *options)
        assert not answer.code, answer.stderr
        assert unchanged(release, namespace) == before
