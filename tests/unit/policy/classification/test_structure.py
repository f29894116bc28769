"""The type of a workload by the structure of its command and Job, where no word of them is known."""

import pytest

from tests.builders import GPU, PodBuilder, Tree, a_deployment, a_pod, a_workload, type_of
from webhook.policy.classification.classify import classify
from webhook.policy.values.tier_policy import Grade
from webhook.policy.workloads.kind_table import BUILT_IN

UNKNOWN = "pytorch/pytorch:2.5.1-cuda12.4-cudnn9-runtime"
JUPYTER = "quay.io/jupyter/pytorch-notebook:cuda12-2025-05-30"
COMFYUI = "ghcr.io/utensils/comfyui-nix:latest-cuda"
VLLM = "vllm/vllm-openai:v0.9.1"


def started(*command: str, image: str = UNKNOWN, **more: object) -> PodBuilder:
    return a_pod("x").asking(image=image, **({"command": list(command)} if command else {}), **more)


def running(script: str) -> PodBuilder:
    return started("bash", "-c", script)


def in_a_job(pod: PodBuilder) -> str:
    return str(classify(pod.view(), [a_workload("batch/v1", "Job", "x").view()], BUILT_IN))


def that_stays(pod: PodBuilder) -> str:
    return str(classify(pod.view(), [a_deployment(name="x").view()], BUILT_IN))


USUAL = "batch, by the usual use of its kind, Job/x"
VLLM_SERVES = 'serving, a guess from its command ("vllm serve")'

IN_A_JOB = {
    "vllm serve m & until curl -sf localhost:8000; do sleep 5; done; python pipeline.py": USUAL,
    "vllm serve m \\\n --port 8000 > log 2>&1 &\nPID=$!\nsleep 90\npython pipeline.py\nkill $PID\nwait $PID": USUAL,
    "(cd /srv && vllm serve m) &\npython pipeline.py": USUAL,
    "tensorboard --logdir /runs & python train.py": 'training, a guess from its command ("train.py")',
    "python train.py & python metrics_reader.py": USUAL,
    "for i in 0 1 2 3; do python train.py --fold $i & done; wait": 'training, a guess from its command ("train.py")',
    "nohup python train.py > log 2>&1 &\ntail -f log": 'training, a guess from its command ("train.py")',
    "python ask.py --url 'http://vllm/?model=a&seed=1' && python train.py": (
        'training, a guess from its command ("train.py")'
    ),
}


@pytest.mark.parametrize(("script", "evidence"), IN_A_JOB.items())
def test_what_a_job_leaves_in_the_background_counts_only_if_its_shell_then_waits(script: str, evidence: str) -> None:
    assert in_a_job(running(script)) == evidence


@pytest.mark.parametrize(
    "script",
    [
        "vllm serve m & sleep 10; ./warm-up; wait",
        "vllm serve m & ./warm-up && sleep infinity",
        "vllm serve m & nginx -g 'daemon off;'",  # what stays in the foreground says nothing
    ],
)
def test_a_server_in_the_background_serves_while_the_shell_stays(script: str) -> None:
    assert that_stays(running(script)) == VLLM_SERVES


BEFORE_SLEEP = {
    "python train.py --n_epochs 5\nsleep infinity": 'training, a guess from its command ("n_epochs")',
    "python evaluate.py; tail -f /dev/null": 'batch, a guess from its command ("evaluate.py")',
    "python pipeline.py && sleep infinity": "None",
    "pip install -r requirements.txt && sleep infinity": 'interactive, a guess from its command ("sleep infinity")',
    "git clone https://example.com/x && ./setup.sh && sleep infinity": (
        'interactive, a guess from its command ("sleep infinity")'
    ),
}


@pytest.mark.parametrize(("script", "evidence"), BEFORE_SLEEP.items())
def test_what_runs_before_a_sleep_is_the_work(script: str, evidence: str) -> None:
    assert str(classify(running(script).view(), (), BUILT_IN)) == evidence


@pytest.mark.parametrize("image", [JUPYTER, COMFYUI, VLLM])
def test_an_image_whose_command_is_overridden_is_what_the_command_says(image: str) -> None:
    assert in_a_job(started("python", "report.py", image=image)) == USUAL
    train = started("python", "-u", "/work/train.py", image=image)
    assert in_a_job(train) == 'training, a guess from its command ("train.py")'


@pytest.mark.parametrize(
    "command", [["start.sh"], ["--listen", "0.0.0.0"], ["python", "main.py", "--port", "8188"], []]
)
def test_an_interactive_image_stays_one_where_nothing_else_of_its_user_runs(command: list[str]) -> None:
    pod = started(*command, image=COMFYUI)
    assert that_stays(pod) == 'interactive, a guess from its image ("comfyui")'


WRAPPED = {
    "runcmd train_resnet --config a.yaml": 'training, a guess from its command ("train_resnet")',
    "cd /work && launcher train": 'training, a guess from its command ("launcher train")',
    "dagster api execute_step": USUAL,  # a noun is no work
    "for eval_dataset in a b; do ./run $eval_dataset; done": USUAL,
    "runcmd --train-like x": USUAL,
}


@pytest.mark.parametrize(("script", "evidence"), WRAPPED.items())
def test_the_second_word_of_a_wrapper_is_the_program(script: str, evidence: str) -> None:
    assert in_a_job(running(script)) == evidence


def test_a_wrapper_that_never_ends_may_start_a_batch() -> None:
    assert that_stays(running("runcmd evaluate_all")) == 'batch, a guess from its command ("evaluate_all")'


@pytest.mark.parametrize("script", ["app.py", "main.py", "server.py", "/srv/server.py"])
def test_a_script_that_is_called_after_nothing_shows_nothing(script: str) -> None:
    assert that_stays(started("python", script)) == "None"
    assert in_a_job(started("python", script)) == USUAL


def test_a_server_of_no_name_is_recognised_by_its_port() -> None:
    pod = started("python", "server.py", ports=[{"containerPort": 9001}])
    assert that_stays(pod) == 'serving, a guess from its port ("9001")'


@pytest.mark.parametrize(
    "pod",
    [
        started(image=COMFYUI),
        started(image="universonic/stable-diffusion-webui:full"),
        started(image="registry.example.com/ypp/sd-webui:02"),
        started("python", "webui.py", "--listen", "--xformers"),
    ],
)
def test_comfyui_and_stable_diffusion_webui_are_one_thing(pod: PodBuilder) -> None:
    assert that_stays(pod).startswith("interactive")


def test_stable_diffusion_webui_without_its_page_serves() -> None:
    pod = started("python", "launch.py", "--nowebui", "--listen")
    assert that_stays(pod).startswith("serving")


AROUND = [
    (a_pod("x").having("spec.serviceAccountName", "vllm-runner"), 'serving, a guess from its service account ("vllm")'),
    (a_pod("x").having("spec.serviceAccountName", "default"), "None"),
    (a_pod("x").having("spec.serviceAccountName", "batch-api-reader"), "None"),
]


@pytest.mark.parametrize(("pod", "evidence"), AROUND)
def test_a_service_account_that_is_called_after_a_program_is_a_hint(pod: PodBuilder, evidence: str) -> None:
    assert that_stays(pod.asking()) == evidence


@pytest.mark.parametrize(
    ("variable", "workload_type"),
    [
        ("OLLAMA_HOST", "serving"),
        ("VLLM_USE_V1", "serving"),
        ("BATCH_SIZE", None),
        ("NCCL_DEBUG", None),
        ("HOME", None),
    ],
)
def test_a_variable_that_begins_with_a_program_s_name_is_a_hint(variable: str, workload_type: str | None) -> None:
    pod = a_pod("x").asking(env=[{"name": variable, "value": "1"}]).view()
    found = classify(pod, [a_deployment(name="x").view()], BUILT_IN)
    assert (found and found.type) == workload_type
    assert found is None or found.grade is Grade.Hinted


def shard(*command: str) -> Tree:
    container = {"name": "main", "command": list(command), "resources": {"limits": {GPU: 1}}}
    return {"spec": {"restartPolicy": "Never", "containers": [container]}}


def jobset(completions: int, parallelism: int, *command: str) -> str:
    job = {"completionMode": "Indexed", "completions": completions, "parallelism": parallelism}
    jobs = [{"name": "shard", "template": {"spec": {**job, "template": shard(*command)}}}]
    return str(type_of(a_workload("jobset.x-k8s.io/v1alpha2", "JobSet", "x", replicatedJobs=jobs)))


def test_indexed_completions_above_parallelism_are_batch_whatever_the_kind_is_used_for() -> None:
    shards = "batch, by the usual use of Indexed completions above its parallelism, JobSet/x"
    assert jobset(64, 8, "./run") == shards
    assert jobset(8, 8, "./run") == "training, by the usual use of its kind, JobSet/x"
    assert jobset(64, 8, "python", "train.py") == 'training, a guess from its command ("train.py")'


def test_a_bare_pod_that_ends_is_usually_batch_if_it_says_what_it_runs() -> None:
    ends = started("python", "-c", "print(1)").having("spec.restartPolicy", "Never").view()
    found = classify(ends, (), BUILT_IN)
    assert found is not None
    assert found.grade >= Grade.Shown
    silent = classify(started().having("spec.restartPolicy", "Never").view(), (), BUILT_IN)
    assert silent is not None
    assert silent.grade is Grade.Hinted


def called(name: str, container: str, *command: str) -> str:
    pod = a_pod(name).asking(name=container, image=UNKNOWN, **({"command": list(command)} if command else {}))
    return str(classify(pod.view(), [a_workload("batch/v1", "Job", name).view()], BUILT_IN))


def test_a_job_and_its_container_that_are_both_called_after_training_train() -> None:
    assert called("train-ranker", "trainer") == 'training, a guess from its name and its container\'s name ("train")'
    assert called("train-ranker", "main") == 'training, a guess from its name ("train")'


@pytest.mark.parametrize("command", [["python", "-c", "print('hello')"], ["sleep", "600"], ["echo", "hello"]])
def test_a_program_that_stands_in_the_command_trains_nothing_whatever_it_is_called(command: list[str]) -> None:
    assert called("critical-training", "trainer", *command).startswith("batch")
