"""Kinds that no row describes: the webhook is asked about what comes of them, so review shows that, by its shape."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from tests.unit.cli.reviewing import review
from webhook.cli.main import app

GPU_POD = """
metadata: {labels: {team: vision}}
spec:
  restartPolicy: OnFailure
  containers:
  - name: trainer
    image: nvcr.io/nvidia/pytorch:24.01-py3
    command: [torchrun, --nproc_per_node=8, /workspace/train.py, --epochs=3]
    resources: {limits: {nvidia.com/gpu: 8}}
"""
PYTORCH_JOB = {
    "apiVersion": "kubeflow.org/v1",
    "kind": "PyTorchJob",
    "metadata": {"name": "mnist"},
    "spec": {"pytorchReplicaSpecs": {"Worker": {"replicas": 2, "template": yaml.safe_load(GPU_POD)}}},
}


def reviewed(manifest: dict[str, Any], *options: str) -> str:
    manifest = {"metadata": {"name": "x"}, **manifest}
    result = CliRunner().invoke(app, ["review", "-f", "-", *options], input=yaml.safe_dump(manifest))
    assert result.exit_code == 0, result.stderr
    return result.stdout


def record(manifest: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(reviewed(manifest, "-o", "json"))
    return found


def test_the_pods_of_a_company_s_own_operator_are_judged_as_the_webhook_will_judge_them() -> None:
    workload = {
        "apiVersion": "ml.example.com/v1",
        "kind": "GPUWorkload",
        "spec": {"groups": [{"replicas": 4, "podTemplate": yaml.safe_load(GPU_POD)}]},
    }
    found = record(workload)
    assert (found["workloadType"], found["tier"]) == ("training", "gpu-training"), "as its pods"
    (pods,) = found["pods"]
    assert (pods["path"], pods["count"], pods["tier"]) == ("spec.groups.0.podTemplate", 4, "gpu-training")
    assert "this kind is neither in the table" in reviewed(workload)
    assert "would change in 4 x pod of spec.groups.0.podTemplate" in reviewed(workload)


@pytest.mark.parametrize("holder", [{"components": [{"template": PYTORCH_JOB}]}, {"manifests": [PYTORCH_JOB]}])
def test_a_wrapper_is_what_it_wraps(holder: dict[str, Any]) -> None:
    """A controller applies the object in a ManifestWork, with owners of its own."""
    found = record({"apiVersion": "work.open-cluster-management.io/v1", "kind": "ManifestWork", "spec": holder})
    assert found["workloadType"] == "training"
    (inside,) = found["inside"]
    assert (inside["kind"], inside["name"], inside["tier"]) == ("PyTorchJob", "mnist", "gpu-training")
    assert [pod["count"] for pod in inside["pods"]] == [2]


@pytest.mark.parametrize(
    ("kind", "spec"),
    [
        ("ClusterTrainingRuntime", {"template": {"spec": yaml.safe_load(GPU_POD)["spec"]}}),
        ("NodePool", {"limits": {"nvidia.com/gpu": 64}, "template": {"spec": {"requirements": []}}}),
        ("HTTPScaler", {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "x"}}),
        ("Odd", {"containers": "none", "spec": {"containers": []}, "template": {"spec": None}}),
    ],
    ids=["a blueprint", "machines", "a reference", "a likeness"],
)
def test_of_these_nothing_comes(kind: str, spec: dict[str, Any]) -> None:
    found = record({"apiVersion": "example.com/v1", "kind": kind, "spec": spec})
    assert (found["workloadType"], "pods" in found, "inside" in found) == (None, False, False)


def test_numbers_that_are_yet_to_be_filled_in_hide_nothing_else() -> None:
    """Manifests have such numbers before envsubst: an API server would refuse them, a reader understands."""
    template = yaml.safe_load(GPU_POD)
    template["spec"]["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": "$GPU_PER_NODE"}}
    worker = {"replicas": "${NUM_NODES:-4}", "template": template}
    job = {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "spec": {"pytorchReplicaSpecs": {"Worker": worker}}}
    found = record(job)
    assert (found["tier"], found["placeholders"]) == ("gpu-training", ["${NUM_NODES:-4}", "$GPU_PER_NODE"])
    assert [pod["count"] for pod in found["pods"]] == [4]
    assert "note: ${NUM_NODES:-4}, $GPU_PER_NODE read as its default, else as 1" in reviewed(job)


def test_a_manifest_that_no_api_server_takes_is_refused() -> None:
    container = {"name": "a", "image": "cuda", "command": "nvidia-smi", "resources": {"limits": {"nvidia.com/gpu": 1}}}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "spec": {"containers": [container]}}
    result = CliRunner().invoke(app, ["review", "-f", "-", "-o", "json"], input=yaml.safe_dump(pod))
    found = json.loads(result.stdout)
    assert (result.exit_code, found["message"]) == (
        1,
        "spec.containers[0].command: expected a list, got text [wrong-type]",
    )


def test_a_client_of_what_has_the_gpus_asks_for_none() -> None:
    pod = {"image": "genai-bench:0.1", "resources": {"limits": {"cpu": 8}}}
    benchmark = {"podOverride": pod, "serviceMetadata": {"gpuCount": 16}}
    assert record({"apiVersion": "ome.io/v1beta1", "kind": "BenchmarkJob", "spec": benchmark})["workloadType"] is None


def test_what_an_unknown_kind_calls_replicas_may_be_anything() -> None:
    pod = {"replicas": {"min": 1}, "podSpec": yaml.safe_load(GPU_POD)["spec"]}
    (pods,) = record({"apiVersion": "example.com/v1", "kind": "Autoscaled", "spec": pod})["pods"]
    assert (pods["path"], pods["count"]) == ("spec.podSpec", 1)


def test_a_template_in_the_wrong_field_is_found_before_anybody_wonders_where_its_pods_are() -> None:
    """A router has no template; somebody's indentation was wrong, and the API server drops what it does not know."""
    spec = {
        "router": {"template": {"containers": [{"name": "main", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]}}
    }
    service = {"apiVersion": "serving.kserve.io/v1alpha1", "kind": "LLMInferenceService", "spec": spec}
    assert "one with GPUs seems to lie at spec.router.template" in reviewed(service)


def test_a_row_of_the_policy_that_points_nowhere_is_reported(tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text("""
apiVersion: config.gpu-tiers.dev/v1alpha1
kind: TierPolicy
kinds:
- {group: ml.example.com, kind: Run, plural: runs, type: training, templates: [{path: spec.template}]}
""")
    run = {"apiVersion": "ml.example.com/v1", "kind": "Run", "spec": {"worker": {"template": yaml.safe_load(GPU_POD)}}}
    assert "one with GPUs seems to lie at spec.worker.template" in reviewed(run, "--policy", str(policy))


def test_a_gpu_that_the_policy_does_not_list_counts_and_is_named() -> None:
    container = {"name": "a", "image": "b", "resources": {"limits": {"nvidia.com/gpu.shared": 1}}}
    pod = {"apiVersion": "v1", "kind": "Pod", "spec": {"containers": [container]}}
    assert "[gpu-not-counted] nvidia.com/gpu.shared: counts as 1 GPU, as the policy does not list it" in reviewed(pod)


def test_a_part_of_a_gpu_that_the_policy_does_not_list_is_named() -> None:
    metadata = {"annotations": {"gpu-fraction": "0.5"}}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [{"name": "a"}]}}
    assert "no GPU that counts: annotation gpu-fraction is not among the policy's resources" in reviewed(pod)
    job = {"apiVersion": "batch/v1", "kind": "Job", "spec": {"template": {**pod, "spec": {"containers": [{}]}}}}
    assert "no GPU that counts: annotation gpu-fraction" in reviewed(job)


def test_gpus_beside_the_container_are_not_denied() -> None:
    spec = {"image": "a/b:1", "gpusPerNode": 8, "command": ["torchrun", "train.py"]}
    out = reviewed({"apiVersion": "ml.example.com/v1", "kind": "Run", "spec": spec})
    assert "this kind is neither in the table" in out
    assert "asks for no GPU" not in out


OF_KUBERNETES = """
apiVersion: %s
kind: %s
metadata: {name: web, namespace: team-alpha}
spec: %s
"""


@pytest.mark.parametrize(
    ("api", "kind", "spec", "said"),
    [
        ("v1", "Service", "{}", "its kind makes no pods"),
        ("v1", "PersistentVolumeClaim", "{}", "its kind makes no pods"),
        ("networking.k8s.io/v1", "NetworkPolicy", "{}", "its kind makes no pods"),
        ("autoscaling/v2", "HorizontalPodAutoscaler", "{}", "its kind makes no pods"),
        ("example.com/v1", "Service", "{}", "this kind is neither in the table"),
    ],
)
def test_a_kind_that_makes_no_pods_is_not_said_to_make_some(api: str, kind: str, spec: str, said: str) -> None:
    _, out, _ = review("-", stdin=OF_KUBERNETES % (api, kind, spec))
    assert out.splitlines()[1].startswith(f"  left alone: {said}")


@pytest.mark.parametrize(("gpus", "tiered", "refused"), [("1", 1, 0), ('"0.5"', 0, 1)])
def test_an_object_whose_parts_get_a_tier_or_are_refused_is_not_left_alone(
    gpus: str, tiered: int, refused: int
) -> None:
    container = f"{{name: a, image: vllm, resources: {{limits: {{nvidia.com/gpu: {gpus}}}}}}}"
    spec = f"{{template: {{spec: {{containers: [{container}]}}}}}}"
    settings = OF_KUBERNETES % ("v1", "ConfigMap", "{}")
    code, out, _ = review("-", stdin=OF_KUBERNETES % ("example.com/v1", "Thing", spec) + f"---\n{settings}")
    assert code == refused
    assert out.count("left alone: ") == 1, "the ConfigMap"
    assert f"2 objects: {tiered} get{'s' if tiered else ''} a tier, {refused} refused, 1 left alone\n" in out


def test_a_template_of_claims_without_a_name_is_no_use() -> None:
    template = "apiVersion: resource.k8s.io/v1\nkind: ResourceClaimTemplate\nmetadata: {}\nspec: {}\n"
    assert "left alone: it has no name, so no other object can name it" in review("-", stdin=template)[1]


def test_a_claim_that_names_nothing_reads_what_to_write() -> None:
    spec = "{resourceClaims: [{name: gpu}], containers: [{name: a, image: b, resources: {claims: [{name: gpu}]}}]}"
    code, out, _ = review("-", stdin=OF_KUBERNETES % ("v1", "Pod", spec))
    assert code == 1
    said = 'spec.resourceClaims: "gpu" names no claim; write resourceClaimTemplateName or resourceClaimName'
    assert f"  refused: {said} [claim-of-nothing]\n" in out
