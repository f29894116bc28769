"""`gpu-tiers review` as a person runs it: manifests in, findings out, an exit code that a script can use."""

import copy
import json
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from webhook.cli.documents import documents
from webhook.cli.main import app
from webhook.cli.review import desk_for, policy_in

EXAMPLES = Path(__file__).parents[3] / "examples"
WORLD = ["--policy", str(EXAMPLES / "policies" / "four-tier.yaml"), "--tenants", str(EXAMPLES / "tenants")]


def review(*arguments: str, stdin: str | None = None) -> tuple[int, str, str]:
    """Exit code, output and errors."""
    result = CliRunner().invoke(app, ["review", *arguments], input=stdin)
    return result.exit_code, result.stdout, result.stderr


def findings(*arguments: str, stdin: str | None = None) -> list[dict[str, object]]:
    _, out, _ = review(*arguments, "-o", "json", stdin=stdin)
    return [json.loads(line) for line in out.splitlines()]


def test_each_example_gets_the_tier_that_its_comment_says() -> None:
    tiers = {}
    for file in sorted(EXAMPLES.glob("*.yaml")):
        for found in findings("-f", str(file), *WORLD):
            tiers[f"{found['kind']}/{found['name']}"] = (found["workloadType"], found["tier"], found["allowed"])
    assert tiers == {
        "Deployment/dashboard": (None, None, True),
        "Deployment/jupyter-notebook": ("interactive", "gpu-interactive", True),
        "Deployment/vllm-chat": ("serving", "gpu-serving", True),
        "InferenceService/sentiment": ("serving", "gpu-serving", True),
        "Job/score-catalogue": ("batch", "gpu-batch", True),
        "Job/train-ranker": ("training", "gpu-training", True),
        "JobSet/pretrain": ("training", "gpu-training", True),
        "JobSet/sweep": ("training", "gpu-batch", True),
        "LeaderWorkerSet/vllm-70b": ("serving", "gpu-serving", True),
        "MPIJob/allreduce": ("training", "gpu-serving", True),
        "Notebook/workbench": ("interactive", "gpu-interactive", True),
        "Pod/transcribe": ("batch", "gpu-batch", True),
        "Pod/debug-shell": ("interactive", "gpu-interactive", True),
        "Pod/finetune-small": ("training", "gpu-training", True),
        "PyTorchJob/llm-finetune": ("training", "gpu-training", False),
        "RayCluster/explore": ("interactive", "gpu-interactive", True),
        "RayJob/embeddings": ("batch", "gpu-batch", True),
        "RayService/reranker": ("serving", "gpu-serving", True),
        "TrainJob/classifier": ("training", "gpu-serving", True),
    }


def test_a_line_of_json_says_all_that_a_script_asks() -> None:
    found = findings("-f", str(EXAMPLES / "pytorchjob-llm-finetune.yaml"), *WORLD)[0]
    assert found["kind"] == "PyTorchJob"
    assert (found["namespace"], found["name"]) == ("team-alpha", "llm-finetune")
    assert found["evidence"] == "training, by its kind, PyTorchJob/llm-finetune"
    assert found["step"] == "workload-type"
    assert found["message"] == (
        "tenant alpha: gpu-training allows 6 GPUs; this PyTorchJob asks for 8 in all. Would fit: gpu-batch. "
        "See TenantQuota/alpha."
    )
    pods = found["pods"]
    assert isinstance(pods, list)
    assert pods[0]["path"] == "spec.pytorchReplicaSpecs.Master.template"
    assert "this pod asks for 8" in pods[0]["message"]
    assert {"op": "add", "path": "/spec/priority", "value": 1000} in pods[0]["patch"]


def test_every_refused_example_is_refused_but_the_one_that_needs_a_full_quota() -> None:
    allowed = {found["name"] for found in findings("-f", str(EXAMPLES / "refused"), *WORLD) if found["allowed"]}
    assert allowed == {"finetune-next"}


def test_exit_codes_tell_a_refusal_from_bad_input(tmp_path: Path) -> None:
    assert review("-f", str(EXAMPLES / "pod-batch.yaml"), *WORLD)[0] == 0
    assert review("-f", str(EXAMPLES / "refused" / "pod-unknown-tier.yaml"), *WORLD)[0] == 1
    assert review("-f", str(tmp_path / "missing.yaml"))[0] == 2


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("a: [", "standard input: not YAML"),
        ("- 1", "standard input: not a Kubernetes object: apiVersion and kind are required"),
        ("{kind: Pod, apiVersion: v1}", "standard input: Pod: metadata is required, with a name"),
        (
            "{kind: Pod, apiVersion: v1, metadata: {name: a, name: b}}",
            'standard input: not YAML: "name" is written twice',
        ),
        ("[" * 100_000, "standard input: nested too deep"),
        ("{kind: 3, apiVersion: v1}", "apiVersion and kind are required"),
        ("", "-: no Kubernetes object in it"),
        ("# nothing but a comment", "-: no Kubernetes object in it"),
        ("{kind: Pod, apiVersion: v1, metadata: {annotations: {bought: 2026-02-30}}}", "standard input: not YAML"),
        (f"{{kind: Pod, apiVersion: v1, metadata: {{a: {'9' * 6000}}}}}", "standard input: not YAML"),
    ],
)
def test_bad_input_is_named(text: str, sentence: str) -> None:
    code, _, errors = review("-f", "-", stdin=text)
    assert code == 2
    assert sentence in errors


def test_aliases_that_unfold_without_end_are_refused() -> None:
    pairs = zip("abcdefg", "bcdefgh", strict=True)
    rows = "\n".join(f"{name}: &{name} [{', '.join([f'*{below}'] * 10)}]" for below, name in pairs)
    bomb = f"kind: Pod\napiVersion: v1\nmetadata: {{name: x}}\na: &a [1]\n{rows}\n"
    code, _, errors = review("-f", "-", stdin=bomb)
    assert code == 2
    assert "more than 1000000 values in one document" in errors


def test_a_kind_that_nobody_knows_is_not_said_to_ask_for_no_gpu() -> None:
    code, out, _ = review("-f", "-", stdin="{kind: Foo, apiVersion: example.com/v1, metadata: {name: x}}")
    assert code == 0
    assert "this kind is not in the table" in out


def test_a_quota_without_the_namespace_that_it_selects_is_told() -> None:
    """Else a pod above the ceiling passes, and nobody knows why."""
    pod, beta = str(EXAMPLES / "refused" / "pod-above-ceiling.yaml"), str(EXAMPLES / "tenants" / "beta.yaml")
    code, _, errors = review("-f", pod, "--tenants", beta)
    assert code == 0
    assert errors.startswith(
        "no tenant selects namespace team-beta: nothing is held against a ceiling or a quota there."
    )
    code, _, errors = review("-f", pod, "--tenants", pod)
    assert (code, errors) == (2, f"{pod}: holds no TenantQuota and no Namespace\n")


def test_a_tenant_among_the_manifests_is_no_workload() -> None:
    _, out, _ = review("-f", str(EXAMPLES / "tenants" / "alpha.yaml"))
    assert out.startswith(
        "TenantQuota alpha\n  left alone: nothing to review; the workloads beside it are judged by it"
    )


async def test_pods_of_two_templates_are_booked_as_different_pods() -> None:
    """As the demo asks: a Master and three Workers draw on one quota."""
    world = list(documents(str(EXAMPLES / "tenants")))
    (job,) = documents(str(EXAMPLES / "pytorchjob-llm-finetune.yaml"))
    replicas = job.tree["spec"]["pytorchReplicaSpecs"]
    replicas["Master"] = copy.deepcopy(next(iter(replicas.values()))) | {"replicas": 1}
    replicas["Worker"] = copy.deepcopy(replicas["Master"]) | {"replicas": 3}
    for each in replicas.values():
        each["template"]["spec"]["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": 2}}
    desk = replace(desk_for(policy_in(EXAMPLES / "policies" / "four-tier.yaml"), [*world, job]), dry_run=False)
    master, workers = (await desk.finding(job)).pods
    assert master.verdict.refusal is None
    assert workers.verdict.refusal is not None
    assert "gpu-training is at 6 of 6 GPUs" in workers.verdict.refusal


def test_a_workload_whose_operator_brings_the_gpus_is_not_said_to_ask_for_none() -> None:
    model = (
        "{kind: Model, apiVersion: kubeai.org/v1, metadata: {name: llama}, spec: {resourceProfile: 'nvidia-gpu-l4:1'}}"
    )
    _, out, _ = review("-f", "-", stdin=model)
    assert "left alone: its operator says what its pods ask for" in out
    assert "serving, by its kind, Model/llama" in out


def test_a_manifest_can_not_write_to_the_terminal_as_it_likes() -> None:
    pod = '{kind: Pod, apiVersion: v1, metadata: {name: x, labels: {gpu-tiers.dev/tier: "\\e[2Jnope"}}, spec: {}}'
    _, out, _ = review("-f", "-", stdin=pod)
    assert "\x1b" not in out


def test_several_documents_and_a_list_are_all_reviewed() -> None:
    pod = "{apiVersion: v1, kind: Pod, metadata: {name: %s}, spec: {containers: [{name: a, image: b}]}}"
    several = "\n---\n".join(
        (pod % "one", "", f"{{apiVersion: v1, kind: List, items: [{pod % 'two'}, {pod % 'three'}]}}")
    )
    assert [found["name"] for found in findings("-f", "-", stdin=several)] == ["one", "two", "three"]


def test_a_person_reads_tier_trace_and_diff() -> None:
    code, out, _ = review("-f", str(EXAMPLES / "pod-training.yaml"), *WORLD)
    assert code == 0
    assert "tier: gpu-training" in out
    assert "trace: group: - | label: the label on the pod says gpu-training" in out
    assert "hook: file in train, 130 s of grace" in out
    assert "+  terminationGracePeriodSeconds: 130" in out
    assert "+    lifecycle:" in out


def test_a_broken_tenant_is_named_with_its_file(tmp_path: Path) -> None:
    tenant = (EXAMPLES / "tenants" / "alpha.yaml").read_text()
    (tmp_path / "tenants.yaml").write_text(f"{tenant}---\n{tenant.replace('alpha', 'gamma').replace('16', 'many')}")
    code, _, errors = review("-f", str(EXAMPLES / "pod-batch.yaml"), "--tenants", str(tmp_path))
    assert code == 2
    assert errors.strip().startswith(f"{tmp_path / 'tenants.yaml'}:2: TenantQuota/gamma: spec.quotas[0].gpus:")


def test_the_version_is_the_packages() -> None:
    project = tomllib.loads((EXAMPLES.parent / "pyproject.toml").read_text())["project"]
    assert CliRunner().invoke(app, ["--version"]).stdout == f"gpu-tiers {project['version']}\n"


def test_a_broken_policy_is_bad_input(tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text("apiVersion: config.gpu-tiers.dev/v1alpha1\nkind: TierPolicy\ntires: []\n")
    code, _, errors = review("-f", str(EXAMPLES / "pod-batch.yaml"), "--policy", str(policy))
    assert code == 2
    assert "tires: there is no such field" in errors
