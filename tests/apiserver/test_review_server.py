"""`gpu-tiers review --server`: a cluster's own answer about manifests that nobody has applied."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from typer.testing import CliRunner

from webhook.cli.main import app

from .installed import Installed, Tree, gpu_pod

pytestmark = pytest.mark.apiserver


@pytest.fixture
def quota(installed: Installed, namespace: str) -> str:
    """A tenant of this namespace with 2 GPUs for training."""
    name = f"quota-{namespace}"
    installed.tenant(name, namespace, quotas=[{"tier": "gpu-training", "gpus": 2}, {"gpus": 8}])
    return name


def job(name: str, gpus: int, **metadata: Any) -> Tree:
    container = {
        "name": "main",
        "image": "pytorch/pytorch:2.13.0",
        "command": ["torchrun", "train.py"],
        "resources": {"limits": {"nvidia.com/gpu": gpus}},
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, **metadata},
        "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [container]}}},
    }


def reviewed(installed: Installed, namespace: str, *objects: Tree, form: str = "json") -> tuple[int, str, str]:
    text = "\n---\n".join(map(json.dumps, objects))
    where = ("--server", "--kubeconfig", str(installed.cluster.kubeconfig), "-n", namespace)
    result = CliRunner().invoke(app, ["review", "-", *where, "-o", form], input=text)
    return result.exit_code, result.stdout, result.stderr


def test_a_job_is_let_in_with_the_tier_and_the_hook_of_its_pods(
    installed: Installed, namespace: str, quota: str
) -> None:
    code, out, errors = reviewed(installed, namespace, job("train", 2))
    found = json.loads(out)
    assert (code, errors, found["allowed"]) == (0, "", True)
    assert (found["name"], found["namespace"], found["line"]) == ("train", namespace, 1)
    assert found["tier"] == "gpu-training"
    assert found["step"] == "workload-type"
    assert any(warning.startswith("[job-backoff]") for warning in found["warnings"])
    (pod,) = found["pods"]
    assert pod["hook"] == {"kind": "file", "containers": ["main"], "gracePeriodSeconds": 130}
    assert installed.usage(quota) == "gpu-training 0/2, total 0/8", "nothing was booked"
    gone = installed.cluster.kubectl("get", "job", "train", f"--namespace={namespace}", check=False)
    assert gone.code != 0


def test_what_only_the_owner_s_kind_proves_counts_for_its_pods(installed: Installed, namespace: str) -> None:
    """No PyTorchJob is stored, so no webhook could look it up: each pod tells of it."""
    template = {"spec": {"containers": [{**container_of(gpu_pod("x")), "name": "pytorch"}]}}
    replicas = {"Worker": {"replicas": 2, "template": template}}
    tree = {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": {"name": "run"}}
    code, out, _ = reviewed(installed, namespace, tree | {"spec": {"pytorchReplicaSpecs": replicas}})
    found = json.loads(out)
    assert (code, found["tier"]) == (0, "gpu-training")
    (pod,) = found["pods"]
    assert (pod["count"], pod["step"], pod["hook"]["kind"]) == (2, "workload-type", "file")


def test_the_pods_of_what_an_app_wrapper_carries_tell_of_both(installed: Installed, namespace: str) -> None:
    wrapper = {"apiVersion": "workload.codeflare.dev/v1beta2", "kind": "AppWrapper", "metadata": {"name": "wrapped"}}
    code, out, _ = reviewed(installed, namespace, wrapper | {"spec": {"components": [{"template": job("train", 2)}]}})
    found = json.loads(out)
    assert (code, found["tier"]) == (0, "gpu-training"), found
    (pod,) = found["pods"]
    assert (pod["step"], pod["hook"]["kind"]) == ("workload-type", "file")


@pytest.fixture
def run_kind(installed: Installed) -> Iterator[str]:
    """A kind that no row of the table describes."""
    names = {"plural": "runs", "singular": "run", "kind": "Run"}
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema}
    spec = {"group": "ml.example.com", "scope": "Namespaced", "names": names, "versions": [version]}
    crd = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "spec": spec}
    name = "runs.ml.example.com"
    installed.cluster.apply(json.dumps(crd | {"metadata": {"name": name}}))
    installed.cluster.kubectl("wait", "--for=condition=Established", f"crd/{name}", "--timeout=60s")
    yield "ml.example.com/v1"
    installed.cluster.kubectl("delete", "crd", name, "--wait=false")


def test_of_a_kind_that_nobody_knows_the_pods_are_asked_about(
    installed: Installed, namespace: str, run_kind: str
) -> None:
    pod = gpu_pod("x", tier="gpu-batch")
    template = {"metadata": {"labels": pod["metadata"]["labels"]}, "spec": pod["spec"]}
    run = {"apiVersion": run_kind, "kind": "Run", "metadata": {"name": "a"}, "spec": {"worker": {"template": template}}}
    code, out, errors = reviewed(installed, namespace, run)
    assert code == 0, errors
    found = json.loads(out)
    assert (found["tier"], [pod["tier"] for pod in found["pods"]]) == (None, ["gpu-batch"])


def container_of(pod: Tree) -> Tree:
    container: Tree = pod["spec"]["containers"][0]
    return container


@pytest.mark.usefixtures("quota")
def test_a_person_reads_the_tier_and_what_would_change(installed: Installed, namespace: str) -> None:
    code, out, _ = reviewed(installed, namespace, job("train", 1), form="text")
    assert code == 0
    assert out.startswith(f"Job {namespace}/train (standard input:1)\n  tier: gpu-training\n  why: workload-type: ")
    assert "  hook: file in main, 130 s of grace\n" in out
    assert "+  priorityClassName: gpu-training" in out
    assert "dry-run-owner" not in out
    assert "tolerations" not in out


def test_what_is_over_quota_now_is_refused_with_the_sentence(installed: Installed, namespace: str, quota: str) -> None:
    assert installed.create(gpu_pod("first", gpus=2, tier="gpu-training"), namespace).code == 0
    code, out, _ = reviewed(installed, namespace, gpu_pod("second", tier="gpu-training"))
    found = json.loads(out)
    assert (code, found["allowed"]) == (1, False)
    assert found["message"] == (
        f"tenant {quota}: gpu-training is at 2 of 2 GPUs; this pod asks for 1. "
        f"Would fit: gpu-serving (6 free), gpu-batch (6 free), gpu-interactive (6 free). See TenantQuota/{quota}."
    )


def test_a_kind_that_the_api_server_does_not_know_is_named(installed: Installed, namespace: str) -> None:
    strange = {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "x"}}
    code, out, _ = reviewed(installed, namespace, strange, gpu_pod("pod", tier="gpu-batch"))
    thing, pod = map(json.loads, out.splitlines())
    assert code == 2
    assert thing["unasked"].startswith("the API server has no kind Thing in example.com/v1; ")
    assert (pod["tier"], pod["allowed"]) == ("gpu-batch", True)


def test_a_namespace_that_is_not_there_is_named(installed: Installed) -> None:
    code, out, _ = reviewed(installed, "nowhere", gpu_pod("pod"))
    assert (code, json.loads(out)["unasked"]) == (
        2, 'namespaces "nowhere" not found; make it first, for a dry run makes none'
    )  # fmt: skip


def test_what_exists_already_is_asked_about_as_new(installed: Installed, namespace: str) -> None:
    pod = gpu_pod("there", tier="gpu-batch")
    assert installed.create(pod, namespace).code == 0
    code, out, _ = reviewed(installed, namespace, pod)
    found = json.loads(out)
    assert (code, found["name"], found["tier"]) == (0, "there", "gpu-batch")
    assert found["notes"][0].startswith("exists already, ")


@pytest.mark.usefixtures("quota")
def test_what_fills_the_quota_itself_is_not_refused_beside_itself(installed: Installed, namespace: str) -> None:
    pod = gpu_pod("there", gpus=2, tier="gpu-training")
    assert installed.create(pod, namespace).code == 0
    code, out, _ = reviewed(installed, namespace, pod)
    found = json.loads(out)
    assert (code, found["allowed"]) == (0, True)
    assert found["notes"][1].startswith("it is there already, so its quota was not asked")


def test_a_mistake_that_the_api_server_finds_is_a_refusal(installed: Installed, namespace: str) -> None:
    code, out, _ = reviewed(installed, namespace, gpu_pod("UPPER", tier="gpu-batch"))
    assert code == 1
    assert json.loads(out)["message"].startswith('by the API server: Pod "UPPER" is invalid: metadata.name: ')


def test_without_the_right_it_says_so(installed: Installed, namespace: str, tmp_path: Any) -> None:
    """As the namespace's default ServiceAccount, which may do nothing."""
    kubectl = installed.cluster.kubectl
    token = kubectl("create", "token", "default", f"--namespace={namespace}").stdout.strip()
    config = kubectl("config", "view", "--raw", "--flatten", "--output=json").json()
    config["users"] = [{"name": each["name"], "user": {"token": token}} for each in config["users"]]
    file = tmp_path / "kubeconfig"
    file.write_text(json.dumps(config))
    arguments = ["review", "-", "--server", "--kubeconfig", str(file), "-n", namespace, "-o", "json"]
    result = CliRunner().invoke(app, arguments, input=json.dumps(gpu_pod("pod")))
    assert result.exit_code == 2
    assert "Workloads are told by the preset four-tier" in result.stderr
    assert "you may not ask: pods is forbidden: User" in json.loads(result.stdout)["unasked"]


def test_without_a_cluster_it_says_where_it_looked(tmp_path: Any) -> None:
    result = CliRunner().invoke(app, ["review", "-", "--server", "--kubeconfig", str(tmp_path / "no")], input="{}")
    assert (result.exit_code, result.stderr) == (
        2, f"can't find the API server: there is no kubeconfig at {tmp_path}/no\n"
    )  # fmt: skip
