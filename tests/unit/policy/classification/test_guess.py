"""The guess at a pod's purpose from its command and name: scripts by their verb, names by their noun."""

import pytest

from tests.builders import a_deployment, a_job, a_pod, a_tier_request
from webhook.policy.classification.classify import classify
from webhook.policy.classification.commands import LONGEST
from webhook.policy.classification.evidence import Subject
from webhook.policy.values.tier_policy import Grade
from webhook.policy.workloads.kind_table import BUILT_IN

COMMANDS = [
    (["python", "-m", "axolotl.cli.train", "x.yaml"], "training"),
    (["sh", "-c", "pip install vllm\n# vllm serve later\npython preprocess.py && torchrun train.py"], "training"),
    (["sh", "-c", "MODEL=x CHECKPOINT=/ckpt python3 -m rtp.start_server"], "serving"),
    (["accelerate", "launch", "tfs/inference_api.py"], "serving"),
    (["python", "/train/serve.py", "--model", "/models/train/7"], "serving"),
    (["python", "train_server.py"], "serving"),
    (["torchrun", "--nproc_per_node=8", "generate_captions.py"], "batch"),
    (["python", "/opt/megatron-lm/tools/preprocess_data.py"], "batch"),
    (["python", "evaluate_finetuned.py"], "batch"),
    (["vllm", "bench", "throughput"], "batch"),
    (["mpirun", "-np", "8", "./pi"], "batch"),
    (["jupyter", "nbconvert", "--execute", "report.ipynb"], "batch"),
    (["bash", "-c", "jupyter lab --ip=0.0.0.0 & python train.py; wait"], "interactive"),
    (["sleep", "infinity"], "interactive"),
    (["python", "tensorflow_mnist_batch_predict.py"], "batch"),
    (["python", "mnist.py"], "training"),
    (["python", "-m", "app.kafka.gpu_consumer"], None),
    (["python", "-m", "src.train.main"], "training"),
    (["pyflyte-execute", "--", "task-module", "workflows.segmentation", "task-name", "train_unet"], "training"),
    (["python", "tools/train_net.py", "--eval-only", "MODEL.WEIGHTS", "/models/final.pkl"], "batch"),
    (["python", "run_glue.py", "--task_name", "mnli", "--do_predict"], "batch"),
    (["python", "run_glue.py", "--do_train", "--do_predict"], "training"),
    (["python3", "-m", "official.vision.train", "--mode=eval"], "batch"),
    (["sh", "-c", "python /workspace/examples/mnist/main.py"], "training"),
    (["bash", "-c", "sleep infinity\npython train.py"], "interactive"),
    (["python", "-c", "subprocess.run(['vllm', 'serve', 'Qwen/Qwen3-8B'])"], "serving"),
    (["python", "test_train.py"], "training"),
    (["sh", "-c", "nvidia-smi; sleep 10000d"], "interactive"),
    (["nvidia-smi"], "batch"),
    (["python", "pipeline.py", "--fine_tune_epochs", "24"], "training"),
    (["sleep", "3600"], "interactive"),
    (["python", "main.py"], None),
    (["sh", "-c", "echo training; sleep 60"], None),
]


@pytest.mark.parametrize(
    ("command", "workload_type"), COMMANDS, ids=[" ".join(command)[:40] for command, _ in COMMANDS]
)
def test_what_runs_tells(command: list[str], workload_type: str | None) -> None:
    found = classify(a_pod("x").running(*command).asking().view(), (), BUILT_IN)
    assert (found and found.type) == workload_type


NAMES = [
    ("pytorch-training-lab", "interactive"),
    ("training-feedback-api", "serving"),
    ("inference-benchmark", "batch"),
    ("code-server", "interactive"),
    ("bert-fine-tune-2", "training"),
]


@pytest.mark.parametrize(("name", "workload_type"), NAMES)
def test_a_name_ends_in_what_it_is(name: str, workload_type: str) -> None:
    found = classify(a_pod(name).running("./run").asking().view(), (), BUILT_IN)
    assert found is not None
    assert found.type == workload_type


def test_what_ends_is_no_server_by_its_name_or_image() -> None:
    pod = a_pod("x").running("./run", image="vllm/vllm-openai:v1").asking()
    assert (
        str(a_tier_request(pod, a_job(name="llm-server")).evidence)
        == "batch, by the usual use of its kind, Job/llm-server"
    )


def test_what_goes_on_for_ever_and_listens_serves() -> None:
    pod = (
        a_pod("x").running("./run").asking().having("spec.containers", [{"name": "y", "ports": [{"containerPort": 9}]}])
    )
    found = classify(pod.view(), [a_deployment(name="x").view()], BUILT_IN)
    assert str(found) == 'serving, a guess from its port ("9")'


def test_a_name_that_says_serving_is_shown_to_by_a_port() -> None:
    """Either alone only hints: a training run may open a port, and a name may mean anything."""
    pod = a_pod("x").running("./run").asking(ports=[{"containerPort": 9}])
    found = classify(pod.view(), [a_deployment(name="chat-server").view()], BUILT_IN)
    assert found is not None
    assert (str(found), found.grade) == ('serving, a guess from its name and port ("server")', Grade.Shown)


def test_a_hint_is_proved_by_what_shows_the_same() -> None:
    """The kind's name comes before the image, and says less."""
    owner = {"apiVersion": "ml.example.com/v1", "kind": "LLMService", "name": "x", "uid": "u", "controller": True}
    pod = a_pod("x").asking(image="vllm/vllm-openai:v1").having("metadata.ownerReferences", [owner])
    found = classify(pod.view(), (), BUILT_IN)
    assert str(found) == 'serving, a guess from its image ("vllm")'


def test_a_worker_whose_launcher_is_unseen_is_no_session() -> None:
    """The MPI operator makes it so: sshd waits for mpirun, not for a person."""
    labels = {"training.kubeflow.org/job-name": "nccl-tests", "training.kubeflow.org/job-role": "worker"}
    pod = a_pod("nccl-tests-worker-0").running("/usr/sbin/sshd", "-De").asking().labelled(labels)
    assert str(classify(pod.view(), (), BUILT_IN)) == 'batch, a guess from its name ("nccl-tests")'


def test_an_image_that_trained_a_model_serves_it_as_well() -> None:
    pod = a_pod("infer").asking(image="acme/mnist-training:1", ports=[{"containerPort": 5000}])
    found = classify(pod.view(), [a_deployment(name="x").view()], BUILT_IN)
    assert found is not None
    assert found.type == "serving"


def test_variables_that_only_training_reads_tell() -> None:
    pod = a_pod("jet-class").asking(env=[{"name": "EPOCHS", "value": "50"}, {"name": "BATCH_SIZE", "value": "8192"}])
    assert str(classify(pod.view(), (), BUILT_IN)) == 'training, a guess from its variable ("EPOCHS")'


@pytest.mark.parametrize(
    ("path", "evidence"), [("/v1/models", 'probe ("/v1/models")'), ("/", 'probe ("readinessProbe")')]
)
def test_what_says_over_the_network_that_it_is_ready_serves(path: str, evidence: str) -> None:
    pod = a_pod("x").asking(readinessProbe={"httpGet": {"path": path, "port": 3003}})
    found = classify(pod.view(), [a_deployment(name="machine-learning").view()], BUILT_IN)
    assert str(found) == f"serving, a guess from its {evidence}"


def test_a_server_s_probe_tells_more_than_jupyter_s_port() -> None:
    probe = {"httpGet": {"path": "/v1/models", "port": 8888}}
    pod = a_pod("x").asking(readinessProbe=probe, ports=[{"containerPort": 8888}])
    found = classify(pod.view(), [a_deployment(name="chatchat").view()], BUILT_IN)
    assert found is not None
    assert found.type == "serving"


def test_a_pod_of_nobody_that_is_made_to_end_is_a_batch_of_something() -> None:
    pod = a_pod("wave-sim").running("./wave", "/data/wave.in").asking().having("spec.restartPolicy", "Never")
    assert str(classify(pod.view(), (), BUILT_IN)) == 'batch, by its restartPolicy ("Never")'
    assert classify(pod.having("spec.restartPolicy", "Always").view(), (), BUILT_IN) is None


@pytest.mark.parametrize(
    ("owner", "workload_type"), [("TrainJob", "training"), ("LLMInferenceService", "serving"), ("GPUWorkload", None)]
)
def test_a_kind_that_no_row_describes_is_a_name_too(owner: str, workload_type: str | None) -> None:
    reference = {"apiVersion": "ml.example.com/v1", "kind": owner, "name": "x", "uid": "1", "controller": True}
    pod = a_pod("x-7f8c9").running("./run").asking().having("metadata.ownerReferences", [reference])
    found = classify(pod.view(), (), BUILT_IN)
    assert (found and found.type) == workload_type


def test_a_job_that_only_says_hello_trains_nothing() -> None:
    pod = a_pod("ml-training-hello").running("sh", "-c", "echo hello world").asking()
    job = a_job(name="ml-training-hello").view()
    assert str(classify(pod.view(), (job,), BUILT_IN)).startswith("batch")


def test_a_bare_pod_that_others_ask_does_not_end_whatever_its_restart_policy() -> None:
    pod = a_pod("lmi-inference").asking(image="deepjavalibrary/djl-serving:0.28.0-lmi", ports=[{"containerPort": 80}])
    never = pod.having("spec.restartPolicy", "Never")
    assert str(classify(never.view(), (), BUILT_IN)) == 'serving, a guess from its image ("serving")'


def test_a_server_s_variables_tell_nothing_of_a_job() -> None:
    """The image of a server that only lists its profiles."""
    env = [{"name": "NIM_CACHE_PATH", "value": "/data"}]
    pod = a_pod("profiles").asking(image="nvcr.io/nim/meta/llama:1.3", env=env, args=["list-model-profiles"])
    assert str(classify(pod.view(), (a_job(name="profiles").view(),), BUILT_IN)).startswith("batch")
    assert str(classify(pod.view(), (), BUILT_IN)) == 'serving, a guess from its variable ("NIM_CACHE_PATH")'


def test_a_text_as_long_as_a_book_is_read_and_remembered_from_its_beginning() -> None:
    book = "python train.py " + "x" * 1_000_000
    pod = a_pod("n" * 300).running("sh", "-c", book, image="i" * 100_000).asking().view()
    subject = Subject.of(pod, ())
    assert max(len(text) for text in (*subject.commands(), *subject.images(), *subject.names())) <= LONGEST
    assert str(classify(pod, (), BUILT_IN)) == 'training, a guess from its command ("train.py")'


@pytest.mark.parametrize("asks", [{}, {"gpu-fraction": "0.5"}, {"gpu-memory": "20480"}])
def test_what_stands_beside_a_shared_gpu_tells_nothing(asks: dict[str, str]) -> None:
    """The exporter is a part of the cluster, and where it had the GPU nothing would be guessed."""
    pod = a_pod("x").running(image="deepguard/inference-worker:2")
    pod = pod.running(image="nvidia/dcgm-exporter:3", name="metrics")
    named = {"gpu-fraction-container-name": "main"} if asks else {}
    found = classify(pod.annotated(asks | named).view(), (), BUILT_IN)
    assert (found and str(found)) == ('serving, a guess from its image ("inference")' if asks else None)
    assert classify(pod.annotated(asks | {"gpu-fraction-container-name": "metrics"}).view(), (), BUILT_IN) is None
