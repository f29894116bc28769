"""Retries under the hook kind `listen`: pods that were evicted, or ended with 143 beside those, are made again.

The new ones are of the same run, so that they resume, and no limit of failures is drawn on: each workload here would
end at the first failure that counts. kwok plays the kubelet, and ends what is evicted with 143.
"""

import copy

import pytest

from .samples import a_container, a_jobset, a_pytorchjob, a_rayjob, a_template, a_trainjob, a_volcano_job, a_workload
from .team import LOST_NODE, Team, Tree, uids
from .volcano import begins

pytestmark = pytest.mark.apiserver

LISTENS = {"gpu-tiers.dev/checkpoint": "listen", "gpu-tiers.dev/checkpoint-python-path": "none"}
ENDED_BY_SIGTERM = 143
PREEMPTED = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
RUNTIME = "TrainingRuntime"


def listening(tree: Tree) -> Tree:
    """The workload with the annotation, and nothing else that speaks of preemptions."""
    listens = copy.deepcopy(tree)
    listens["metadata"]["annotations"] = LISTENS
    for job in listens["spec"].get("replicatedJobs", []):
        del job["template"]["spec"]["podFailurePolicy"]
    return listens


def a_runtime(name: str, **pod: object) -> Tree:
    """A runtime of the team's: Trainer's own for PyTorch, with a Job that bears no failure."""
    node = a_template({"name": "node", "image": "pytorch/pytorch:2.7.1-cuda12.8-cudnn9-runtime"}, **pod)
    labels = {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}
    template = {"metadata": {"labels": labels}, "spec": {"backoffLimit": 0, "template": node}}
    job_set = {"spec": {"replicatedJobs": [{"name": "node", "template": template}]}}
    policy: Tree = {"numNodes": 1, "torch": {}}
    return a_workload("trainer.kubeflow.org/v1alpha1", RUNTIME, name, {"mlPolicy": policy, "template": job_set})


def an_mpijob(name: str, policy: str) -> Tree:
    """A launcher without a GPU, and workers, as the training operator makes them."""
    launcher = a_template(a_container("mpi", 0, "mpirun", "python", "train.py"))
    worker = a_template(a_container("mpi", 1, "sleep", "infinity"))
    replicas = {
        "Launcher": {"replicas": 1, "restartPolicy": "ExitCode", "template": launcher},
        "Worker": {"replicas": 2, "restartPolicy": policy, "template": worker},
    }
    return a_workload("kubeflow.org/v1", "MPIJob", name, {"slotsPerWorker": 1, "mpiReplicaSpecs": replicas})


def with_gpus(pods: list[Tree]) -> list[Tree]:
    """Return the pods that train."""
    return [each for each in pods if "nvidia.com/gpu" in str(each["spec"]["containers"])]


def runs_of(pods: list[Tree]) -> set[str]:
    """GPU_TIERS_RUN of all containers that have it."""
    variables = (each for pod in pods for container in pod["spec"]["containers"] for each in container.get("env", []))
    return {each["value"] for each in variables if each["name"] == "GPU_TIERS_RUN"}


def condition(tree: Tree, kind: str) -> str:
    """The status of a condition; empty where there is none."""
    conditions = tree.get("status", {}).get("conditions", [])
    return next((each["status"] for each in conditions if each["type"] == kind), "")


def trains_on(team: Team, what: str, pods: int) -> None:
    """One pod is evicted and another one saves beside it: new ones of the same run come in place of both."""
    before = team.runs(pods)
    run = {team.get(what)["metadata"]["uid"]}
    assert runs_of(with_gpus(before)) == run
    evicted, other, *_ = with_gpus(before)
    team.evicts(evicted)
    team.ends(other, ENDED_BY_SIGTERM)
    gone = uids([evicted, other])
    team.eventually(lambda: not gone & uids(running(team)) and len(running(team)) == pods, "new pods in their place")
    after = with_gpus(running(team))
    assert [runs_of([each]) for each in after] == [run] * len(after)


def running(team: Team) -> list[Tree]:
    """Return its pods but those that have ended, which a Job keeps."""
    return [each for each in team.pods() if each["status"]["phase"] == "Running"]


@pytest.mark.usefixtures("jobset")
def test_a_jobset_does_not_restart_for_evicted_pods(team: Team) -> None:
    assert team.apply(listening(a_jobset("train", nodes=3, failurePolicy={"maxRestarts": 0}))) == LOST_NODE
    trains_on(team, "jobset/train", 4)
    job = team.get("job/train-workers-0")
    other = {"containerName": "pytorch", "operator": "In", "values": [ENDED_BY_SIGTERM]}
    assert job["spec"]["podFailurePolicy"]["rules"] == [PREEMPTED, {"action": "Ignore", "onExitCodes": other}]
    assert job["status"].get("failed", 0) == 0
    assert condition(team.get("jobset/train"), "Failed") == ""
    assert team.get("jobset/train")["status"].get("restarts", 0) == 0


@pytest.mark.usefixtures("jobset")
def test_a_jobset_fails_for_a_program_that_fails(team: Team) -> None:
    team.apply(listening(a_jobset("train", nodes=3, failurePolicy={"maxRestarts": 0})))
    team.ends(with_gpus(team.runs(4))[0], 1)
    team.eventually(lambda: condition(team.get("jobset/train"), "Failed") == "True", "the end of the JobSet")


@pytest.mark.usefixtures("trainer")
def test_a_trainjob_trains_on_where_its_runtime_lets_pods_fail(team: Team) -> None:
    team.apply(a_runtime("ours", restartPolicy="Never"))
    train_job = a_trainjob("bert", nodes=3, runtimeRef={"kind": RUNTIME, "name": "ours"})
    assert team.apply(listening(train_job)) == LOST_NODE
    trains_on(team, "trainjob/bert", 3)
    assert condition(team.get("trainjob/bert"), "Failed") == ""


@pytest.mark.usefixtures("trainer")
def test_a_trainjob_of_a_runtime_as_shipped_is_warned_about_and_fails(team: Team) -> None:
    answer = team.apply(listening(a_trainjob("default")))
    assert "[runtime-backoff] preemptions count against the runtime's backoffLimit 6" in answer
    team.apply(a_runtime("careless"))
    answer = team.apply(listening(a_trainjob("once", runtimeRef={"kind": RUNTIME, "name": "careless"})))
    assert "[runtime-backoff] preemptions count against the runtime's backoffLimit 0" in answer
    team.delete("trainjob/default")
    pods = team.runs(4)
    assert "podFailurePolicy" not in team.get("job/once-node-0")["spec"], "JobSet lets them restart in place"
    team.evicts(pods[0])
    team.eventually(lambda: condition(team.get("trainjob/once"), "Failed") == "True", "the end of the TrainJob")


@pytest.mark.usefixtures("training_operator")
@pytest.mark.parametrize("policy", ["ExitCode", "OnFailure"])
def test_a_pytorchjob_trains_on(team: Team, policy: str) -> None:
    assert team.apply(listening(restarting(a_pytorchjob("bert"), policy))) == ""
    trains_on(team, "pytorchjob/bert", 4)
    assert condition(team.get("pytorchjob/bert"), "Failed") != "True"


@pytest.mark.usefixtures("training_operator")
def test_a_pytorchjob_that_never_restarts_is_warned_about_and_fails(team: Team) -> None:
    answer = team.apply(listening(restarting(a_pytorchjob("bert"), "Never")))
    assert "[replicas-never] Worker has restartPolicy Never: one preemption fails the PyTorchJob" in answer
    team.ends(team.runs(4)[0], ENDED_BY_SIGTERM)
    team.eventually(lambda: condition(team.get("pytorchjob/bert"), "Failed") == "True", "the end of the PyTorchJob")


def restarting(job: Tree, policy: str) -> Tree:
    """A PyTorchJob whose pods are made again as this policy says."""
    for replicas in job["spec"]["pytorchReplicaSpecs"].values():
        replicas["restartPolicy"] = policy
    return job


@pytest.mark.usefixtures("training_operator")
def test_an_mpijobs_workers_are_made_again(team: Team) -> None:
    """They never end by themselves: the launcher starts their programs, and starts them again."""
    assert team.apply(listening(an_mpijob("bert", "ExitCode"))) == ""
    before = with_gpus(team.runs(3))
    for each in before:
        team.evicts(each)
    team.eventually(lambda: not uids(before) & uids(team.pods()), "the end of its workers")
    assert runs_of(before) == runs_of(with_gpus(team.runs(3))) == {team.get("mpijob/bert")["metadata"]["uid"]}


@pytest.mark.usefixtures("training_operator")
def test_an_mpijob_that_is_not_to_go_by_exit_codes_is_warned_about_and_fails(team: Team) -> None:
    answer = team.apply(listening(an_mpijob("bert", "OnFailure")))
    assert "[replicas-never] Worker has restartPolicy OnFailure: one preemption fails the MPIJob" in answer
    team.evicts(with_gpus(team.runs(3))[0])
    team.eventually(lambda: condition(team.get("mpijob/bert"), "Failed") == "True", "the end of the MPIJob")


@pytest.mark.usefixtures("kuberay")
def test_a_rayjobs_workers_and_its_next_cluster_are_of_its_run(team: Team) -> None:
    assert team.apply(listening(a_rayjob("embed", backoffLimit=1, submitterConfig={"backoffLimit": 0}))) == ""
    trains_on(team, "rayjob/embed", 4)
    run = {team.get("rayjob/embed")["metadata"]["uid"]}
    before = running(team)
    [submits] = [each for each in before if each["metadata"].get("labels", {}).get("job-name")]
    team.ends(submits, 1)
    team.eventually(lambda: uids(before).isdisjoint(uids(team.pods())), "the end of its first cluster")
    assert runs_of(team.runs(4)) == run
    assert team.get("rayjob/embed")["status"]["failed"] == 1


@pytest.mark.usefixtures("volcano")
def test_a_volcano_job_trains_on_where_it_says_so(team: Team) -> None:
    again = [{"event": "PodEvicted", "action": "RestartJob"}, {"event": "PodFailed", "action": "RestartJob"}]
    job = listening(a_volcano_job("bert", policies=again))
    job["metadata"]["labels"] = {"gpu-tiers.dev/tier": "gpu-training"}
    assert team.apply(job) == ""
    begins(team, "bert")
    before = team.runs(4)
    run = {team.get("job.batch.volcano.sh/bert")["metadata"]["uid"]}
    assert runs_of(before) == run
    team.evicts(before[0])
    team.eventually(lambda: not uids(before) & uids(team.pods()), "the end of all its pods")
    begins(team, "bert")
    assert runs_of(team.runs(4)) == run
