"""The pods of a TrainJob with its runtime, as Kubeflow Trainer makes them."""

import pytest

from tests.builders import Built, Tree, a_policy
from tests.builders.operators import LIMITS, a_replicated_job, a_runtime, a_trainjob_of
from tests.builders.words import sentence
from webhook.objects.group_kind import GroupKind
from webhook.objects.refusal import Refused
from webhook.policy.quota.demand import demand_of
from webhook.policy.workloads.kind_table import BUILT_IN
from webhook.policy.workloads.made_pods import with_runtime
from webhook.policy.workloads.templates import workload
from webhook.policy.workloads.workload import Member

DEEPSPEED = a_runtime(
    a_replicated_job("launcher", "mpirun", "python", "train.py", step="trainer"),
    a_replicated_job("node", "/usr/sbin/sshd"),
    name="deepspeed-distributed",
    mpi={"mpiImplementation": "OpenMPI", "runLauncherAsNode": True},
)
TORCHTUNE = a_runtime(
    a_replicated_job("dataset-initializer", step="dataset-initializer"),
    a_replicated_job("node", "tune", "run", step="trainer", resources={"limits": {"nvidia.com/gpu": 2}}),
    torch={"numProcPerNode": "auto"},
)


def members(runtime: Built, **spec: object) -> dict[str, Member]:
    tree = with_runtime(a_trainjob_of(runtime, **spec).json(), runtime.json())
    jobs = tree["runtime"]["spec"]["template"]["spec"]["replicatedJobs"]
    made = workload(tree, BUILT_IN.by_kind[GroupKind("trainer.kubeflow.org", "TrainJob")]).members
    return dict(zip([job["name"] for job in jobs], made, strict=True))


def gpus(found: dict[str, Member]) -> dict[str, int]:
    return {name: int(demand_of(each.template, (), a_policy())) * each.count for name, each in found.items()}


def test_a_trainjob_that_says_nothing_is_what_its_runtime_is() -> None:
    found = members(TORCHTUNE)
    assert gpus(found) == {"dataset-initializer": 0, "node": 2}
    assert found["node"].template.spec.containers[0].command == ("tune", "run")
    assert found["node"].path == "runtime.spec.template.spec.replicatedJobs.1.template.spec.template"


def test_what_the_trainer_says_replaces_what_the_runtime_says() -> None:
    trainer = {
        "image": "example.com/bert:2",
        "command": ["torchrun"],
        "args": ["train_bert.py"],
        "env": [{"name": "EPOCHS", "value": "3"}],
        "numNodes": 4,
        "resourcesPerNode": LIMITS,
    }
    found = members(TORCHTUNE, trainer=trainer)
    assert gpus(found) == {"dataset-initializer": 0, "node": 32}
    (container,) = found["node"].template.spec.containers
    assert (container.image, container.command, container.args) == (
        "example.com/bert:2",
        ("torchrun",),
        ("train_bert.py",),
    )
    assert [each.name for each in container.env] == ["EPOCHS"]


def test_the_nodes_of_the_runtime_count_where_the_trainjob_names_none() -> None:
    runtime = a_runtime(numNodes=3)
    assert gpus(members(runtime, trainer={"resourcesPerNode": LIMITS})) == {"node": 24}


def test_a_trainer_that_asks_for_no_gpus_keeps_those_of_the_runtime() -> None:
    found = members(TORCHTUNE, trainer={"resourcesPerNode": {"limits": {"memory": "64Gi"}}})
    assert gpus(found)["node"] == 2


def test_an_mpi_launcher_that_trains_is_one_of_the_nodes() -> None:
    trainer = {"numNodes": 3, "resourcesPerNode": LIMITS, "command": ["mpirun", "python", "finetune.py"]}
    found = members(DEEPSPEED, trainer=trainer)
    assert gpus(found) == {"launcher": 8, "node": 16}
    assert found["launcher"].template.spec.containers[0].command == ("mpirun", "python", "finetune.py")
    assert found["node"].template.spec.containers[0].command == ("/usr/sbin/sshd",)


def test_a_runtime_of_one_replica_each_is_made_once() -> None:
    job = a_replicated_job("node", step="trainer") | {"replicas": 5}
    assert gpus(members(a_runtime(job), trainer={"resourcesPerNode": LIMITS})) == {"node": 8}


@pytest.mark.parametrize(
    "override",
    [
        {"podSpecOverrides": [{"targetJobs": [{"name": "node"}], "nodeSelector": {"gpu": "h100"}}]},
        {"podTemplateOverrides": [{"targetJobs": [{"name": "node"}], "spec": {"nodeSelector": {"gpu": "h100"}}}]},
        {
            "runtimePatches": [
                {
                    "manager": "kueue.x-k8s.io/manager",
                    "trainingRuntimeSpec": {
                        "template": {
                            "spec": {
                                "replicatedJobs": [
                                    {
                                        "name": "node",
                                        "template": {"spec": {"template": {"spec": {"nodeSelector": {"gpu": "h100"}}}}},
                                    }
                                ]
                            }
                        }
                    },
                }
            ]
        },
    ],
    ids=["Trainer 2.0", "Trainer 2.1", "Trainer 2.2"],
)
def test_overrides_of_pods_as_each_version_calls_them(override: Tree) -> None:
    found = members(TORCHTUNE, **override)
    assert found["node"].template.spec.node_selector == {"gpu": "h100"}
    assert found["node"].template.spec.containers[0].command == ("tune", "run")
    assert not found["dataset-initializer"].template.spec.node_selector


def test_a_containers_override_is_merged_by_its_name() -> None:
    containers = [{"name": "node", "env": [{"name": "SEED", "value": "1"}]}]
    override = {"targetJobs": [{"name": "node"}, {"name": "no-such"}], "spec": {"containers": containers}}
    found = members(TORCHTUNE, podTemplateOverrides=[override])
    assert sorted(found) == ["dataset-initializer", "node"]
    (container,) = found["node"].template.spec.containers
    assert ([each.name for each in container.env], container.command) == (["SEED"], ("tune", "run"))


def test_labels_and_annotations_of_the_trainjobs_spec_are_those_of_the_jobset() -> None:
    found = members(TORCHTUNE, labels={"team": "nlp"}, annotations={"note": "x"})
    for each in found.values():
        job, job_set = each.makers
        assert (job.row.kind, job_set.row.kind) == ("Job", "JobSet")
        assert (job_set.labels, job_set.annotations) == ({"team": "nlp"}, {"note": "x"})


def test_nodes_that_are_no_number_are_refused() -> None:
    with pytest.raises(Refused) as refused:
        members(TORCHTUNE, trainer={"numNodes": "two"})
    assert sentence(refused.value.refusal) == (
        'spec.trainer.numNodes: "two" is not a count of nodes; write a whole number from 0 to 1000000'
    )


@pytest.mark.parametrize(
    "runtime",
    [{}, {"spec": None}, {"spec": {"template": "x"}}, {"spec": {"mlPolicy": 5, "template": {"spec": {}}}}],
)
def test_a_runtime_of_another_shape_makes_no_pods(runtime: Tree) -> None:
    tree = with_runtime(a_trainjob_of(TORCHTUNE).json(), runtime)
    assert not workload(tree, BUILT_IN.by_kind[GroupKind("trainer.kubeflow.org", "TrainJob")]).members


def test_jobs_of_another_shape_are_no_jobs() -> None:
    tree = with_runtime(
        a_trainjob_of(
            TORCHTUNE, runtimePatches=5, podTemplateOverrides=[3, {"targetJobs": [{"name": []}]}], trainer=7
        ).json(),
        {"spec": {"template": {"spec": {"replicatedJobs": ["x", {"name": []}, {"name": "node", "template": 9}]}}}},
    )
    assert not workload(tree, BUILT_IN.by_kind[GroupKind("trainer.kubeflow.org", "TrainJob")]).members[1:]
