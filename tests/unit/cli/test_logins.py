"""A login that does not hold, and rights that are missing: each is told as what it is, with what helps."""

import json
from pathlib import Path
from typing import Any, ClassVar

import pytest

from tests.unit.cli.conftest import Answering, Answers
from tests.unit.cli.person import asked
from webhook.cli.cluster.target import role_for
from webhook.kube.errors import Forbidden, failure


def refusing(code: int, message: str) -> Answers:
    return lambda _: (code, json.dumps({"kind": "Status", "message": message}))


COMMANDS = [
    ("usage",),
    ("check",),
    ("lint",),
    ("audit",),
    ("posture",),
    ("open-gates",),
    ("explain", "job/train"),
    ("policy", "diff", "three-tier"),
]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_login_that_is_not_accepted_is_no_missing_right(
    answering: Answering, tmp_path: Path, command: tuple[str, ...]
) -> None:
    server = answering(refusing(401, "Unauthorized"))
    code, text = asked(tmp_path, server, {"token": "of-yesterday"}, *command)
    assert code == 2
    assert "HTTP 401, Unauthorized. The API server does not accept this login: log in again" in text
    assert "ClusterRole" not in text


def test_who_gives_no_login_is_not_sent_for_a_role(answering: Answering, tmp_path: Path) -> None:
    message = 'tenantquotas is forbidden: User "system:anonymous" cannot list resource "tenantquotas"'
    code, text = asked(tmp_path, answering(refusing(403, message)), {}, "usage")
    assert code == 2
    assert "The API server does not accept this login: log in again" in text
    assert "ClusterRole" not in text


READER = "--clusterrole=gpu-tiers-reader "
CLUSTER_READER = "--clusterrole=gpu-tiers-cluster-reader "
VIEW = "--clusterrole=view --user=NAME --namespace=beta"
OF_AN_OPERATOR = "--clusterrole=CLUSTERROLE --user=NAME --namespace=beta"
ROLES = {
    "/apis/gpu-tiers.dev/v1alpha1/tenantquotas": READER,
    "/api/v1/nodes": READER,
    "/api/v1/namespaces/gpu-tiers/configmaps/gpu-tiers": READER,
    "/apis/batch/v1/namespaces/beta/jobs/train": VIEW,
    "/api/v1/namespaces/beta/events": VIEW,
    "/api/v1/namespaces/beta": VIEW,
    "/apis/kubeflow.org/v1/namespaces/beta/pytorchjobs/train": OF_AN_OPERATOR,
    "/api/v1/namespaces": CLUSTER_READER,
    "/api/v1/pods": CLUSTER_READER,
    "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations": CLUSTER_READER,
}


@pytest.mark.parametrize(("path", "role"), ROLES.items(), ids=ROLES)
def test_the_role_that_is_named_has_the_right(path: str, role: str) -> None:
    refused = failure("GET", path, 403, b"")
    assert isinstance(refused, Forbidden)
    assert f"{role.strip()} " in f"{role_for(refused)} "


def test_who_has_the_reader_is_not_sent_for_it(answering: Answering, tmp_path: Path) -> None:
    server = answering(AnApi("/apis/batch/v1/namespaces/beta/jobs/train"))
    command = ("explain", "job/train", "--namespace=beta", "--policy=four-tier")
    code, text = asked(tmp_path, server, {"token": "hers"}, *command)
    assert code == 2
    assert "ClusterRole view has the right; an admin of namespace beta binds it: " in text
    assert "gpu-tiers-reader" not in text


class AnApi:
    """An API server with these kinds, of which nothing is there, and which refuses these paths."""

    GROUPS = (
        ("batch", "Job", "jobs"),
        ("ray.io", "RayJob", "rayjobs"),
        ("kubeflow.org", "PyTorchJob", "pytorchjobs"),
        ("gpu-tiers.dev", "TenantQuota", "tenantquotas"),
    )
    POLICY: ClassVar = {
        "metadata": {"namespace": "gpu-tiers", "name": "gpu-tiers"},
        "data": {"policy.yaml": "kind: TierPolicy\napiVersion: config.gpu-tiers.dev/v1alpha1\npreset: four-tier\n"},
    }

    def __init__(self, *refused: str) -> None:
        self._refused = refused

    def __call__(self, path: str) -> tuple[int, str]:
        if path in self._refused:
            return 403, json.dumps({"kind": "Status", "message": f"{path} is forbidden"})
        items = [self.POLICY] if path == "/api/v1/configmaps" else []
        return 200, json.dumps({"metadata": {"name": path.rpartition("/")[2]}, "items": items, **self._served(path)})

    def _served(self, path: str) -> dict[str, Any]:
        versions = {group: {"groupVersion": f"{group}/v1"} for group, _, _ in self.GROUPS}
        resources = {
            f"/apis/{group}/v1": [{"name": plural, "kind": kind, "namespaced": True}]
            for group, kind, plural in self.GROUPS
        }
        groups = [{"name": name, "preferredVersion": each, "versions": [each]} for name, each in versions.items()]
        group = path.removeprefix("/apis/")
        its = [versions[group]] if group in versions else []
        return {"groups": groups, "resources": resources.get(path, []), "versions": its}


def test_an_audit_of_a_part_concludes_nothing_of_the_whole(answering: Answering, tmp_path: Path) -> None:
    hidden = (
        "/apis/ray.io/v1/namespaces/beta/rayjobs",
        "/apis/kubeflow.org/v1/namespaces/beta/pytorchjobs",
        "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations",
    )
    command = ("audit", "--namespace=beta", "--policy=four-tier")
    code, text = asked(tmp_path, answering(AnApi(*hidden)), {"token": "hers"}, *command)
    assert code == 0, text
    assert "What the policy does to rayjobs.ray.io and pytorchjobs.kubeflow.org and their pods is unknown:" in text
    assert text.count("to rayjobs.ray.io and") == 1
    assert "No workload that could be read has GPUs." in text
    assert text.count("ClusterRole view has the right where the operator adds its kinds to it") == 1
    assert "kubectl create clusterrolebinding gpu-tiers-cluster-readers" in text


def test_without_pods_an_audit_says_of_which_namespace(answering: Answering, tmp_path: Path) -> None:
    server = answering(AnApi("/api/v1/namespaces/beta/pods"))
    code, text = asked(tmp_path, server, {"token": "hers"}, "audit", "--namespace=beta", "--policy=four-tier")
    assert code == 2
    assert text.startswith("What the policy does to workloads is unknown: you lack the right to list pods in beta.")
    assert "ClusterRole view has the right; an admin of namespace beta binds it" in text


@pytest.mark.parametrize("command", ["lint", "check"])
def test_the_role_for_what_is_not_checked_is_named(answering: Answering, tmp_path: Path, command: str) -> None:
    server = answering(AnApi("/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"))
    _, text = asked(tmp_path, server, {"token": "hers"}, command)
    assert "the right to list webhook configurations" in text
    assert "kubectl create clusterrolebinding gpu-tiers-cluster-readers" in text
    assert READER not in text


@pytest.mark.parametrize("answer", [(404, "<html>not here</html>"), (200, "<html>welcome</html>")], ids=["404", "200"])
def test_a_server_that_is_no_api_server_has_no_say_in_quotas(
    answering: Answering, tmp_path: Path, answer: tuple[int, str]
) -> None:
    code, text = asked(tmp_path, answering(lambda _: answer), {"token": "hers"}, "usage")
    assert code == 2, text
    assert "There is no TenantQuota" not in text
    assert "what answers is no API server" in text or "the answer is not what a Kubernetes API sends" in text


def test_a_cluster_without_tenants_says_so(answering: Answering, tmp_path: Path) -> None:
    code, text = asked(tmp_path, answering(AnApi()), {"token": "hers"}, "usage")
    assert (code, text.strip()) == (0, "There is no TenantQuota: no tenant has a quota.")


def test_a_cluster_whose_crd_was_deleted_says_so_too(answering: Answering, tmp_path: Path) -> None:
    """Somebody deleted the CRD, and all TenantQuotas with it; nobody meant that no quota holds."""

    def answer(path: str) -> tuple[int, str]:
        return (404, "404 page not found") if path.startswith("/apis/gpu-tiers.dev") else AnApi()(path)

    code, text = asked(tmp_path, answering(answer), {"token": "hers"}, "usage")
    assert code == 0
    gone = "the CustomResourceDefinition tenantquotas.gpu-tiers.dev does not exist, so no quota holds"
    assert f"Warning: {gone}" in text
