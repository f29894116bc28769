"""A TrainJob is told what its pods will be told: the command, the GPUs and the labels may stand in its runtime."""

from time import process_time

import pytest

from tests.builders import Built, PodBuilder, WorkloadBuilder, a_pod, a_tenant, a_workload
from tests.builders.operators import LIMITS, a_replicated_job, a_runtime, a_trainjob_of
from tests.builders.world import Answer, FakeApi

TUNE = a_replicated_job("node", "tune", "run", step="trainer", resources={"limits": {"nvidia.com/gpu": 2}})
BENCHMARK = a_runtime(
    a_replicated_job("launcher", "mpirun", "all_reduce_perf", step="trainer"),
    a_replicated_job("node", "/usr/sbin/sshd"),
    name="mpi-distributed",
    mpi={"mpiImplementation": "OpenMPI", "runLauncherAsNode": True},
)


def a_node_of(train_job: WorkloadBuilder, *command: str) -> tuple[PodBuilder, tuple[Built, ...]]:
    """A pod as the JobSet and Job controllers make it, and its owners, which Trainer made of the runtime."""
    node = a_pod().asking().running(*command)
    jobs = [{"name": "node", "template": {"spec": {"template": node.template()}}}]
    job_set = a_workload("jobset.x-k8s.io/v1alpha2", "JobSet", "bert", replicatedJobs=jobs)
    job_set = job_set.having("metadata.uid", "uid-of-the-jobset").owned_by(train_job)
    job = a_workload("batch/v1", "Job", "bert-node-0", template=node.template()).owned_by(job_set)
    return node.labelled({"jobset.sigs.k8s.io/jobset-name": "bert"}).owned_by(job), (train_job, job_set, job)


async def tiers(runtime: Built, train_job: WorkloadBuilder, *command: str) -> tuple[str, str, Answer]:
    """The tier of the TrainJob as it is applied, and that of a pod of it."""
    pod, owners = a_node_of(train_job, *command)
    world = FakeApi(runtime, *owners)
    applied = await world.validate(train_job)
    patched = (await world.mutate(pod)).patched
    return applied.audit["tier"], patched["spec"]["priorityClassName"], applied


async def test_a_command_that_stands_in_the_runtime_counts_for_both() -> None:
    train_job = a_trainjob_of(BENCHMARK, trainer={"numNodes": 2, "resourcesPerNode": LIMITS})
    said, got, applied = await tiers(BENCHMARK, train_job, "mpirun", "all_reduce_perf")
    assert (said, got) == ("gpu-batch", "gpu-batch")
    (warning,) = applied.warnings
    assert warning.startswith("[job-backoff] preemptions count against the runtime's backoffLimit 6; ")


async def test_a_command_of_the_trainjob_counts_before_the_runtimes() -> None:
    trainer = {"command": ["mpirun", "python", "train.py"], "resourcesPerNode": LIMITS}
    said, got, _ = await tiers(BENCHMARK, a_trainjob_of(BENCHMARK, trainer=trainer), "mpirun", "python", "train.py")
    assert (said, got) == ("gpu-training", "gpu-training")


async def test_a_launcher_without_gpus_has_its_gangs_tier() -> None:
    runtime = a_runtime(a_replicated_job("launcher", "mpirun", step="trainer"), TUNE, mpi={})
    train_job = a_trainjob_of(runtime)
    _, owners = a_node_of(train_job)
    launcher = a_pod().running("mpirun").labelled({"jobset.sigs.k8s.io/jobset-name": "bert"}).owned_by(owners[-1])
    patched = (await FakeApi(runtime, *owners).mutate(launcher)).patched
    assert patched["spec"]["priorityClassName"] == "gpu-training"


async def test_a_tier_label_in_the_spec_counts_when_the_trainjob_is_applied() -> None:
    """Trainer writes spec.labels on the JobSet, and pods have it of their owner."""
    labels = {"gpu-tiers.dev/tier": "gpu-batch"}
    runtime = a_runtime(TUNE)
    train_job = a_trainjob_of(runtime, labels=labels)
    pod, (_, job_set, job) = a_node_of(train_job, "tune", "run")
    world = FakeApi(runtime, train_job, job_set.labelled(labels), job)
    assert (await world.validate(train_job)).audit["tier"] == "gpu-batch"
    assert (await world.mutate(pod)).patched["spec"]["priorityClassName"] == "gpu-batch"


async def test_gpus_of_the_runtime_are_counted_against_the_quota() -> None:
    tenant = a_tenant(quotas=[{"tier": "gpu-training", "gpus": 6}])
    runtime = a_runtime(TUNE)
    train_job = a_trainjob_of(runtime, trainer={"numNodes": 4})
    answer = await FakeApi(runtime, tenant).validate(train_job)
    assert answer.sentence.startswith("tenant alpha: gpu-training allows 6 GPUs; this TrainJob asks for 8 in all."), (
        answer.sentence
    )


async def test_a_runtime_of_the_namespace_is_read_too() -> None:
    runtime = a_runtime(TUNE, kind="TrainingRuntime")
    answer = await FakeApi(runtime).validate(a_trainjob_of(runtime))
    assert answer.audit["tier"] == "gpu-training"
    assert [each.partition("]")[0] for each in answer.warnings] == ["[lost-node"]


async def test_a_runtime_that_is_not_there_is_said() -> None:
    runtime = a_runtime(TUNE)
    train_job = a_trainjob_of(runtime, trainer={"numNodes": 2, "resourcesPerNode": LIMITS})
    answer = await FakeApi().validate(train_job)
    assert answer.allowed
    assert answer.audit["tier"] == "gpu-training"
    (warning,) = answer.warnings
    assert warning.startswith("[runtime-unread] ClusterTrainingRuntime/torch-distributed can't be read: its commands")


async def test_a_runtime_that_is_not_there_is_said_though_no_gpus_are_known() -> None:
    answer = await FakeApi().validate(a_trainjob_of(a_runtime(TUNE)))
    assert [each.split()[0] for each in answer.warnings] == ["[runtime-unread]"]


async def test_without_the_runtime_a_trainjob_and_its_pods_still_agree() -> None:
    train_job = a_trainjob_of(BENCHMARK, trainer={"resourcesPerNode": LIMITS})
    said, got, _ = await tiers(a_runtime(name="another"), train_job, "mpirun", "all_reduce_perf")
    assert (said, got) == ("gpu-training", "gpu-training")


async def test_without_the_runtime_a_tier_label_in_the_spec_counts() -> None:
    labels = {"gpu-tiers.dev/tier": "gpu-batch"}
    train_job = a_trainjob_of(BENCHMARK, trainer={"resourcesPerNode": LIMITS}, labels=labels)
    assert (await FakeApi().validate(train_job)).audit["tier"] == "gpu-batch"


async def test_a_runtime_of_another_api_is_not_read() -> None:
    train_job = a_workload(
        "trainer.kubeflow.org/v1alpha1",
        "TrainJob",
        runtimeRef={"apiGroup": "slurm.example.com", "kind": "SlurmRuntime", "name": "x"},
        trainer={"resourcesPerNode": LIMITS},
    )
    (warning,) = (await FakeApi().validate(train_job)).warnings
    assert warning.startswith("[runtime-unread] SlurmRuntime/x ")


@pytest.mark.parametrize("nodes", [-2, "many"])
async def test_nodes_that_are_none_are_refused_whoever_says_what_they_hold(nodes: object) -> None:
    sentence = f'"{nodes}" is not a count of nodes; write a whole number from 0 to 1000000'
    answer = await FakeApi(a_runtime(TUNE)).validate(a_trainjob_of(a_runtime(TUNE), trainer={"numNodes": nodes}))
    assert answer.sentence == f"spec.trainer.numNodes: {sentence}"
    broken = a_runtime(TUNE, numNodes=nodes)
    answer = await FakeApi(broken).validate(a_trainjob_of(broken))
    assert answer.sentence == f"runtime.spec.mlPolicy.numNodes: {sentence}"


async def test_a_pod_does_not_pay_for_nodes_that_are_none() -> None:
    broken = a_runtime(TUNE, numNodes=-2)
    pod, owners = a_node_of(a_trainjob_of(broken), "tune", "run")
    assert (await FakeApi(broken, *owners).create(pod)).audit["tier"] == "gpu-training"


async def test_so_many_overrides_that_nobody_wrote_them_hold_nobody_up() -> None:
    overrides = [{"targetJobs": [{"name": "node"}], "containers": [{"name": f"c{number}"}]} for number in range(6000)]
    begun = process_time()
    assert (await FakeApi(BENCHMARK).validate(a_trainjob_of(BENCHMARK, podSpecOverrides=overrides))).allowed
    assert process_time() - begun < 10
