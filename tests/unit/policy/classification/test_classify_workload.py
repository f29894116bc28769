"""The type of a whole workload follows from all its members."""

import pytest

from tests.builders import GPU, Tree, WorkloadBuilder, a_workload, type_of
from tests.builders.operators import an_mpijob
from webhook.policy.values.tier_policy import Grade


def member(*command: str, gpus: int = 1) -> Tree:
    container = {"name": "main", "command": list(command), "resources": {"limits": {GPU: gpus}}}
    return {"spec": {"containers": [container]}}


def launching(*command: str) -> WorkloadBuilder:
    return an_mpijob(member(*command, gpus=0), member("/usr/sbin/sshd"))


def test_a_gang_is_what_its_launcher_runs_though_its_workers_wait_for_it() -> None:
    assert str(type_of(launching("mpirun", "python", "x.py"))) == "training, by the usual use of its kind, MPIJob/work"
    assert str(type_of(launching("mpirun", "xhpl"))) == 'batch, a guess from its command ("xhpl")'


def test_a_program_that_stands_whole_in_the_command_is_batch_also_beside_workers_that_wait() -> None:
    program = "import time, torch; a = torch.rand(9, 9); print(a @ a); time.sleep(60)"
    assert str(type_of(launching("mpirun", "-n", "2", "python3", "-c", program))) == (
        'batch, a guess from its command ("mpirun")'
    )
    assert str(type_of(launching("mpirun", "python", "-c", "model.fit(x, epochs=3)"))) == (
        "training, by the usual use of its kind, MPIJob/work"
    )


@pytest.mark.parametrize(
    "container",
    [
        {"env": [{"name": "TF_CONFIG", "value": "{}"}], "command": ["python", "multi_worker.py"]},
        {"command": ["sh", "-c", 'export TF_CONFIG="{}"\npython multi_worker.py']},
        {"command": ["sh", "-c", "TF_CONFIG=$(cat /etc/volcano/config) python multi_worker.py"]},
        {"env": [{"name": "PADDLE_TRAINERS_NUM", "value": "2"}], "command": ["python", "run.py"]},
    ],
)
def test_a_launcher_whose_processes_find_each_other_for_training_trains(container: Tree) -> None:
    """TensorFlow reads TF_CONFIG, and Paddle its trainers, to train on several nodes: nothing else does."""
    whole = {"name": "tensorflow", "image": "x", "resources": {"limits": {GPU: 1}}, **container}
    tasks = [{"name": "worker", "replicas": 2, "template": {"spec": {"containers": [whole]}}}]
    found = type_of(a_workload("batch.volcano.sh/v1alpha1", "Job", tasks=tasks))
    assert found is not None
    assert (found.type, found.grade, found.source) == ("training", Grade.Shown, "variable")


def test_a_kind_for_training_is_not_proof_where_it_plainly_runs_something_else() -> None:
    trainer = {"command": ["sleep", "infinity"], "resourcesPerNode": {"limits": {GPU: 1}}}
    found = type_of(a_workload("trainer.kubeflow.org/v1alpha1", "TrainJob", trainer=trainer))
    assert str(found) == 'interactive, a guess from its command ("sleep infinity")'
    assert found is not None
    assert str(found.otherwise) == "training, by its kind, TrainJob/work"


def test_an_entrypoint_in_a_field_of_its_own_is_read() -> None:
    cluster = {"workerGroupSpecs": [{"replicas": 1, "template": member("ray", "start")}]}
    job = a_workload("ray.io/v1", "RayJob", entrypoint="python a/b/train.py", rayClusterSpec=cluster)
    assert str(type_of(job)) == 'training, a guess from its command ("train.py")'


def test_what_asks_for_no_gpu_has_no_type_whatever_it_is_called() -> None:
    assert (
        type_of(a_workload("apps/v1", "Deployment", "training-operator", template=member("/manager", gpus=0))) is None
    )


def test_where_the_operator_brings_the_gpus_a_proof_tells_without_them() -> None:
    tuning = WorkloadBuilder(
        {"apiVersion": "kaito.sh/v1beta1", "kind": "Workspace", "metadata": {"name": "x"}, "tuning": {"method": "lora"}}
    )
    assert str(type_of(tuning)) == "training, by the fields of Workspace/x"


def test_a_jobset_that_is_named_and_packed_as_a_server_is_no_training() -> None:
    """Saxml's example of serving from several hosts runs its servers in a JobSet, each with its arguments alone."""

    def jobset(name: str, image: str) -> str:
        container = {"name": name, "image": image, "args": ["--port=10001"], "resources": {"limits": {GPU: 4}}}
        job = {"template": {"spec": {"template": {"spec": {"containers": [container]}}}}, "name": "node"}
        return str(type_of(a_workload("jobset.x-k8s.io/v1alpha2", "JobSet", "x", replicatedJobs=[job])))

    assert jobset("sax-model-server", "saxml/inference/sax-model-server:v1") == (
        'serving, a guess from its container\'s name and image ("server")'
    )
    assert jobset("node", "saxml/inference/sax-model-server:v1") == "training, by the usual use of its kind, JobSet/x"


@pytest.mark.parametrize(("name", "workload_type"), [("llama-mmlu-eval", "batch"), ("monolith-batch-job", "training")])
def test_what_trains_by_its_kind_may_be_named_after_an_evaluation(name: str, workload_type: str) -> None:
    specs = {"Worker": {"replicas": 1, "template": member("./run")}}
    found = type_of(a_workload("kubeflow.org/v1", "PyTorchJob", name, pytorchReplicaSpecs=specs))
    assert found is not None
    assert found.type == workload_type
