"""`gpu-tiers review` as a person runs it: manifests in, findings out, an exit code that a script can use."""

import copy
import json
import tomllib
from pathlib import Path

import pytest
from msgspec.structs import replace
from typer.testing import CliRunner

from tests.builders import Built, a_job, a_pod, a_workload, policy_file
from tests.builders.operators import a_runtime
from tests.unit.cli.reviewing import EXAMPLES, WORLD, findings, review
from webhook.cli.cluster.installed import policy_in
from webhook.cli.main import app
from webhook.cli.manifests.documents import documents
from webhook.cli.manifests.inputs import cluster_of
from webhook.cli.manifests.judge import judge_at


def test_a_line_of_json_says_all_that_a_script_asks() -> None:
    found = findings("-f", str(EXAMPLES / "pytorchjob-llm-finetune.yaml"), *WORLD)[0]
    assert found["kind"] == "PyTorchJob"
    assert (found["namespace"], found["name"]) == ("team-alpha", "llm-finetune")
    assert found["evidence"] == "training, by its kind, PyTorchJob/llm-finetune"
    assert found["step"] == "workload-type"
    assert found["message"] == (
        "tenant alpha: gpu-training allows 6 GPUs; this PyTorchJob asks for 8 in all. Would fit: gpu-batch. "
        "See TenantQuota/alpha. [too-large]"
    )
    pods = found["pods"]
    assert isinstance(pods, list)
    assert pods[0]["path"] == "spec.pytorchReplicaSpecs.Master.template"
    assert "this pod asks for 8" in pods[0]["message"]
    assert {"op": "add", "path": "/spec/priority", "value": 1000} in pods[0]["patch"]


def test_the_listener_is_shown_by_its_size_and_to_programs_whole() -> None:
    file = str(EXAMPLES / "warnings" / "python-path.yaml")
    _, shown, _ = review("-f", file)
    assert "+    gpu-tiers.dev/listener-start: (" in shown
    assert "+      mountPath: /opt/gpu-tiers/python" in shown
    assert len(shown.splitlines()) < 100
    patch = str(findings("-f", file)[0]["pods"])
    assert "class Listener" in patch


def test_what_a_job_itself_gets_is_shown_with_its_price() -> None:
    _, shown, _ = review("-f", str(EXAMPLES / "warnings" / "lost-node.yaml"))
    assert "+  podFailurePolicy:" in shown
    assert "[lost-node] added podFailurePolicy: " in shown


def test_nobody_is_asked_offline_who_may_name_a_tier(tmp_path: Path) -> None:
    policy, manifest = tmp_path / "policy.yaml", tmp_path / "job.yaml"
    policy.write_text(policy_file(tierAccess="RBAC"))
    manifest.write_text(json.dumps(a_job(a_pod().asking().of_tier("gpu-serving")).json()))
    _, out, _ = review("-f", str(manifest), "--policy", str(policy))
    assert (
        "note: not checked: whether its user may name gpu-serving (tierAccess: RBAC). To see it: "
        "kubectl auth can-i use priorityclasses/gpu-serving -n team-alpha --as USER" in out
    )
    manifest.write_text(json.dumps(a_job().json()))
    assert "not checked" not in review("-f", str(manifest), "--policy", str(policy))[1]


def test_it_says_how_pods_would_lie_to_others(tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text(policy_file(placement={"gpu-training": {"strategy": "Pack", "topologyKey": "rack"}}))
    gang = ("-f", str(EXAMPLES / "mpijob-allreduce.yaml"), "--policy", str(policy))
    said = "Pack by rack with training.kubeflow.org/job-name=allreduce"
    _, out, _ = review(*gang)
    assert f"  placement: {said}\n" in out
    assert "podAffinity:" in out
    (found,) = findings(*gang)
    assert {pod["placement"] for pod in found["pods"]} == {said}  # type: ignore[attr-defined]


def test_it_says_what_autoscalers_are_told(tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text(policy_file(autoscaler={"gpu-training": "24h"}))
    gang = ("-f", str(EXAMPLES / "mpijob-allreduce.yaml"), "--policy", str(policy))
    said = "24h: karpenter.sh/do-not-disrupt=24h, cluster-autoscaler.kubernetes.io/safe-to-evict=false"
    _, out, _ = review(*gang)
    assert f"  autoscaler: {said}\n" in out
    assert "+    cluster-autoscaler.kubernetes.io/safe-to-evict: 'false'" in out
    (found,) = findings(*gang)
    assert {pod["autoscaler"] for pod in found["pods"]} == {said}  # type: ignore[attr-defined]


def test_exit_codes_tell_a_refusal_from_bad_input(tmp_path: Path) -> None:
    assert review("-f", str(EXAMPLES / "pod-batch.yaml"), *WORLD)[0] == 0
    assert review("-f", str(EXAMPLES / "refused" / "pod-unknown-tier.yaml"), *WORLD)[0] == 1
    assert review("-f", str(tmp_path / "missing.yaml"))[0] == 2


@pytest.mark.parametrize("kind", ["Job", "Pod"])
def test_an_object_in_an_appwrapper_that_is_none_is_named_by_its_place(tmp_path: Path, kind: str) -> None:
    broken = a_job(a_pod().asking()).json() if kind == "Job" else a_pod().asking().json()
    components = [{"template": broken | {"metadata": [1]}}]
    file = tmp_path / "wrapper.json"
    file.write_text(
        json.dumps(a_workload("workload.codeflare.dev/v1beta2", "AppWrapper", components=components).json())
    )
    code, out, _ = review("-f", str(file), *WORLD)
    assert code == 1
    assert "refused: spec.components.0.template.metadata: expected a map, got a list" in out
    policies = [str(EXAMPLES / "policies" / "four-tier.yaml")] * 2
    assert CliRunner().invoke(app, ["policy", "diff", *policies, str(file)]).exit_code == 0


def test_a_kind_that_nobody_knows_is_not_said_to_ask_for_no_gpu() -> None:
    code, out, _ = review("-f", "-", stdin="{kind: Foo, apiVersion: example.com/v1, metadata: {name: x}}")
    assert code == 0
    assert "this kind is neither in the table" in out


def test_a_tenant_among_the_manifests_is_no_workload() -> None:
    _, out, _ = review("-f", str(EXAMPLES / "tenants" / "alpha.yaml"))
    assert out.startswith(
        f"TenantQuota alpha ({EXAMPLES}/tenants/alpha.yaml:2)\n  left alone: it is used to review the other objects"
    )


@pytest.mark.parametrize(
    ("runtime", "title"),
    [
        (a_runtime(), "ClusterTrainingRuntime torch-distributed"),
        (a_runtime(kind="TrainingRuntime"), "TrainingRuntime team-alpha/torch-distributed"),
    ],
)
def test_a_runtime_is_a_fact_too(runtime: Built, title: str) -> None:
    code, out, _ = review("-f", "-", stdin=json.dumps(runtime.json()))
    assert (code, out) == (0, f"{title} (standard input:1)\n  left alone: it is used to review the other objects\n\n")


async def test_pods_of_two_templates_are_booked_as_different_pods() -> None:
    """The demo asks for this: a Master and three Workers draw on one quota."""
    world = list(documents(str(EXAMPLES / "tenants")))
    (job,) = documents(str(EXAMPLES / "pytorchjob-llm-finetune.yaml"))
    replicas = job.tree["spec"]["pytorchReplicaSpecs"]
    replicas["Master"] = copy.deepcopy(next(iter(replicas.values()))) | {"replicas": 1}
    replicas["Worker"] = copy.deepcopy(replicas["Master"]) | {"replicas": 3}
    for each in replicas.values():
        each["template"]["spec"]["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": 2}}
    policy = policy_in(EXAMPLES / "policies" / "four-tier.yaml")
    judge = replace(judge_at(cluster_of(policy, [*world, job]), policy), dry_run=False)
    master, workers = (await judge.finding(job)).pods
    assert master.verdict.refusal is None
    assert workers.message is not None
    assert "gpu-training is at 6 of 6 GPUs" in workers.message


def test_a_workload_whose_operator_brings_the_gpus_is_not_said_to_ask_for_none() -> None:
    model = (
        "{kind: Model, apiVersion: kubeai.org/v1, metadata: {name: llama}, spec: {resourceProfile: 'nvidia-gpu-l4:1'}}"
    )
    _, out, _ = review("-f", "-", stdin=model)
    assert "left alone: its operator decides what its pods ask for" in out
    assert "serving, by its kind, Model/llama" in out


def test_a_manifest_can_not_write_to_the_terminal_as_it_likes() -> None:
    pod = '{kind: Pod, apiVersion: v1, metadata: {name: x, labels: {gpu-tiers.dev/tier: "\\e[2Jnope"}}, spec: {}}'
    _, out, _ = review("-f", "-", stdin=pod)
    assert "\x1b" not in out


CRITICAL = """
kind: Deployment
apiVersion: apps/v1
metadata: {name: coordinator, namespace: team-beta}
spec:
  replicas: 2
  selector: {matchLabels: {app: coordinator}}
  template:
    metadata: {labels: {app: coordinator}}
    spec:
      priorityClassName: system-cluster-critical
      containers: [{name: main, image: registry.example/coordinator:1}]
"""


def test_a_deployment_without_gpus_hears_of_its_class_what_its_pods_would() -> None:
    code, out, _ = review("-f", "-", *WORLD, stdin=CRITICAL)
    assert code == 1
    assert out == (
        "Deployment team-beta/coordinator (standard input:2)\n  tier: -\n  type: unknown\n"
        "  refused: spec.template.spec.priorityClassName: system-cluster-critical (2000000000) is above the ceiling of "
        "tenant beta; "
        "its pods may have a class of value 800 at most, or none. See TenantQuota/beta. [class-above-ceiling]\n\n"
    )
    (elsewhere,) = findings("-f", "-", *WORLD, stdin=CRITICAL.replace("team-beta", "kube-system"))
    assert elsewhere["allowed"]


def test_so_does_a_daemonset_of_a_kind_that_nobody_knows() -> None:
    (found,) = findings("-f", "-", *WORLD, stdin=CRITICAL.replace("apps/v1", "example.com/v1"))
    assert not found["allowed"]


def test_a_deployment_without_gpus_that_names_a_tier_reads_what_its_pods_get() -> None:
    (found,) = findings("-f", "-", *WORLD, stdin=CRITICAL.replace("system-cluster-critical", "gpu-batch"))
    assert (found["tier"], found["step"], found["allowed"]) == ("gpu-batch", "class", True)


def test_a_person_reads_tier_trace_and_diff() -> None:
    code, out, _ = review("-f", str(EXAMPLES / "pod-training.yaml"), *WORLD)
    assert code == 0
    assert "tier: gpu-training" in out
    assert "trace: group: - | label: the label on the pod says gpu-training" in out
    assert "hook: file in train, 130 s of grace" in out
    assert "+  terminationGracePeriodSeconds: 130" in out
    assert "+    lifecycle:" in out


def test_the_version_is_the_packages() -> None:
    project = tomllib.loads((EXAMPLES.parent / "pyproject.toml").read_text())["project"]
    assert CliRunner().invoke(app, ["--version"]).stdout == f"gpu-tiers {project['version']}\n"


def test_what_is_written_on_the_workload_itself_is_shown(tmp_path: Path) -> None:
    head = "apiVersion: config.gpu-tiers.dev/v1alpha1\nkind: TierPolicy\n"
    (tmp_path / "policy.yaml").write_text(f"{head}templates: Mutate\nkueue: {{workloadPriorityClasses: true}}\n")
    job = a_job(a_pod().running("torchrun").asking()).labelled({"kueue.x-k8s.io/queue-name": "research"})
    _, out, _ = review("-f", "-", "--policy", str(tmp_path / "policy.yaml"), stdin=json.dumps(job.json()))
    changes = out.partition("would change in this object:")[2].partition("would change in")[0]
    assert "+    kueue.x-k8s.io/priority-class: gpu-training" in changes
    assert "+      priorityClassName: gpu-training" in changes
