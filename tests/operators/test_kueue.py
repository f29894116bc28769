"""The real Kueue beside ours: one order of preemption, and one quota of two."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from installation.examples import example_policy
from installation.readiness import wait_for_webhook
from localcluster.operators import RunningOperator
from localcluster.ports import free_ports
from tests.apiserver.installed import Installed
from tests.apiserver.reporting import began, sender, token_for

from .team import Team, Tree

QUEUE = {"kueue.x-k8s.io/queue-name": "research"}
FLAVOR, H100 = "h100", {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}
WORKLOADS = "workloads.kueue.x-k8s.io"
TRAINS = ("torchrun", "train.py")
FLAVORS = [{"name": FLAVOR, "nodeLabels": H100}]
POLICY = example_policy() | {"kueue": {"workloadPriorityClasses": True}, "resourceFlavors": FLAVORS}
BOOST = "kueue.x-k8s.io/priority-boost"

pytestmark = [pytest.mark.apiserver, pytest.mark.usefixtures("jobset", "configured_for_kueue")]


@pytest.fixture(scope="module")
def configured_for_kueue(installed: Installed, kueue: RunningOperator) -> Iterator[RunningOperator]:
    """gpu-tiers that knows of Kueue, and of a flavor, which all nodes have."""
    installed.cluster.kubectl("label", "nodes", "--all", "--overwrite", *(f"{key}={H100[key]}" for key in H100))
    installed.upgrade(policy=POLICY)
    yield kueue
    installed.upgrade()


@pytest.fixture
def hearing(installed: Installed) -> Iterator[Installed]:
    """gpu-tiers with a port for reports, told to write what evictions cost."""
    (port,) = free_ports(1)
    installed.kill()
    installed.restart(f"--reports-port={port}")
    wait_for_webhook(installed.cluster)
    installed.upgrade(policy=POLICY | {"evictionCost": {"kueue": "Write"}})
    yield installed
    installed.upgrade(policy=POLICY)
    installed.kill()
    installed.restart()
    wait_for_webhook(installed.cluster)


@pytest.fixture
def queue(team: Team) -> Iterator["Queue"]:
    """Kueue's queue of the team: 4 GPUs, and who has a higher priority takes them from others."""
    found = Queue(team)
    yield found
    found.remove()


class Queue:
    """A ClusterQueue for one team, and its LocalQueue."""

    def __init__(self, team: Team, name: str = "research", gpus: int = 4) -> None:
        self.team = team
        self.name = name
        self.cluster_queue = f"{team.namespace}-{name}"
        self.gpus = gpus
        self.go_on()

    def hold(self) -> None:
        """The administrator lets nothing more in."""
        self.team.apply(*self._trees("Hold"))

    def go_on(self) -> None:
        """The administrator opens it, again."""
        self.team.apply(*self._trees("None"))

    def _trees(self, stop: str) -> Iterator[Tree]:
        quota = {"name": FLAVOR, "resources": [{"name": "nvidia.com/gpu", "nominalQuota": self.gpus}]}
        cluster_queue = {
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": self.team.namespace}},
            "preemption": {"withinClusterQueue": "LowerPriority"},
            "resourceGroups": [{"coveredResources": ["nvidia.com/gpu"], "flavors": [quota]}],
            "stopPolicy": stop,
        }
        here = {"name": self.name, "namespace": self.team.namespace}
        for kind, metadata, spec in (
            ("ResourceFlavor", {"name": FLAVOR}, {"nodeLabels": H100}),
            ("ClusterQueue", {"name": self.cluster_queue}, cluster_queue),
            ("LocalQueue", here, {"clusterQueue": self.cluster_queue}),
        ):
            yield {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": kind, "metadata": metadata, "spec": spec}

    def used(self) -> int:
        """GPUs that Kueue holds for what it has admitted."""
        status = self.team.get(f"clusterqueue/{self.cluster_queue}").get("status", {})
        usage = (each for flavor in status.get("flavorsReservation", []) for each in flavor["resources"])
        return sum(int(each["total"]) for each in usage)

    def holds(self, gpus: int) -> None:
        """Wait until its status says that it holds so many GPUs."""
        self.team.eventually(lambda: self.used() == gpus, f"{gpus} GPUs of Kueue's quota in use")

    def workload(self, owner: str) -> Tree:
        """Return the Kueue Workload of the object of that name, or {}."""
        found = self.team.get(WORKLOADS)["items"]
        return next((each for each in found if owner in owners(each)), {})

    def says(self, owner: str, condition: str) -> tuple[str, str]:
        """Status and message of one of that Workload's conditions."""
        conditions = self.workload(owner).get("status", {}).get("conditions", [])
        found = next((each for each in conditions if each["type"] == condition), {})
        return found.get("status", ""), found.get("message", "")

    def remove(self) -> None:
        """Delete it; nobody waits for its end."""
        self.team.kubectl("delete", "clusterqueue", self.cluster_queue, "--wait=false")


def owners(workload: Tree) -> set[str]:
    """The names of its owners; of a group of pods its own name."""
    metadata = workload["metadata"]
    return {metadata["name"], *(each["name"] for each in metadata.get("ownerReferences", []))}


def container(*command: str, gpus: int = 1) -> Tree:
    image = {"name": "main", "image": "registry.example/work:1", "command": list(command)}
    return image | {"resources": {"limits": {"nvidia.com/gpu": gpus}}}


def queued(api_version: str, kind: str, name: str, **spec: Any) -> Tree:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "labels": dict(QUEUE)}, "spec": spec}


def a_job(name: str, pods: int = 1, gpus: int = 1, *command: str) -> Tree:
    spec = {"restartPolicy": "Never", "containers": [container(*(command or TRAINS), gpus=gpus)]}
    return queued("batch/v1", "Job", name, parallelism=pods, completions=pods, suspend=True, template={"spec": spec})


def a_jobset(name: str, nodes: int = 4) -> Tree:
    job = a_job("x", nodes)["spec"] | {"suspend": False}
    replicated = [{"name": "node", "replicas": 1, "template": {"spec": job}}]
    return queued("jobset.x-k8s.io/v1alpha2", "JobSet", name, replicatedJobs=replicated)


def a_notebook(name: str, replicas: int = 1) -> Tree:
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container("jupyter", "lab")]}}
    selector = {"matchLabels": labels}
    return queued(
        "apps/v1", "StatefulSet", name, replicas=replicas, serviceName=name, selector=selector, template=template
    )


def a_group(name: str, pods: int, place: str) -> list[Tree]:
    return [a_pod_of_group(name, number, pods, place) for number in range(pods)]


def a_pod_of_group(name: str, number: int, pods: int, place: str) -> Tree:
    pod = queued("v1", "Pod", f"{name}-{number}", restartPolicy="Never", containers=[container(*TRAINS)])
    pod["metadata"]["annotations"] = {"kueue.x-k8s.io/pod-group-total-count": str(pods)}
    pod["metadata"][place]["kueue.x-k8s.io/pod-group-name"] = name
    return pod


@pytest.mark.parametrize(
    ("trees", "pods", "tier", "priority"),
    [
        ([a_job("work", 2)], 2, "gpu-training", 1000),
        ([a_job("work", 1)], 1, "gpu-training", 1000),
        ([a_jobset("work", 2)], 2, "gpu-training", 1000),
        ([a_notebook("work", 2)], 2, "gpu-interactive", 200),
        (a_group("work", 2, "labels"), 2, "gpu-training", 1000),
        (a_group("work", 2, "annotations"), 2, "gpu-training", 1000),
    ],
    ids=["Job", "Job of one pod", "JobSet", "StatefulSet", "group of pods", "group of pods, annotated"],
)
def test_kueue_ranks_it_as_the_scheduler_does_its_pods(
    team: Team, queue: Queue, trees: list[Tree], pods: int, tier: str, priority: int
) -> None:
    team.apply(*trees)
    team.runs(pods)
    assert team.tiers() == {(tier, tier, priority)}
    [workload] = team.get(WORKLOADS)["items"]
    assert workload["spec"]["priority"] == priority
    assert workload["spec"]["priorityClassRef"]["name"] == tier
    team.shows(f"gpu-training {pods if tier == 'gpu-training' else 0}/8, total {pods}/16")
    queue.holds(pods)


@pytest.mark.parametrize("tree", [a_job("work", 4), a_jobset("work")], ids=["Job", "JobSet"])
def test_what_kueue_holds_is_booked_by_nobody(team: Team, queue: Queue, tree: Tree) -> None:
    queue.hold()
    team.apply(tree)
    team.eventually(lambda: queue.workload("work") != {}, "its Workload")
    team.shows("gpu-training 0/8, total 0/16")
    queue.go_on()
    team.runs(4)
    team.shows("gpu-training 4/8, total 4/16")


def test_a_notebook_evicts_no_training(team: Team, queue: Queue) -> None:
    team.apply(a_jobset("train"))
    training = {each["metadata"]["uid"] for each in team.runs(4)}
    team.apply(a_notebook("desk"))
    team.eventually(lambda: "insufficient unused quota" in queue.says("desk-0", "QuotaReserved")[1], "Kueue's answer")
    running = [each for each in team.pods() if each["status"]["phase"] == "Running"]
    assert {each["metadata"]["uid"] for each in running} == training
    assert queue.says("train", "Evicted")[0] != "True"


def test_training_evicts_a_notebook(team: Team, queue: Queue) -> None:
    team.apply(a_notebook("desk"))
    team.runs(1)
    queue.holds(1)
    team.apply(a_jobset("train"))
    team.eventually(lambda: running(team, "train") == 4, "the training")
    assert running(team, "desk") == 0


def running(team: Team, name: str) -> int:
    """Return how many pods of that workload run."""
    pods = (each for each in team.pods() if each["status"]["phase"] == "Running")
    return sum(each["metadata"]["name"].startswith(f"{name}-") for each in pods)


def test_what_our_rows_have_no_room_for_is_refused_in_an_event(team: Team, queue: Queue) -> None:
    """Kueue keeps its quota for it: one of the two quotas has to go."""
    team.may_use({"gpus": "16"}, {"resourceFlavor": FLAVOR, "gpus": "1"})
    team.apply(a_job("large", 3))
    sentence = f"h100 allows 1 GPU; this Job asks for 3 in all. Would fit: no tier. See TenantQuota/{team.namespace}."
    answer = ("UpdateRefused", f"tenant {team.namespace}: {sentence}")
    team.eventually(lambda: answer in events_of(team, "Job", "large"), "the event")
    queue.holds(3)
    team.may_use({"gpus": "16"})
    team.runs(3)


def events_of(team: Team, kind: str, name: str) -> set[tuple[str, str]]:
    """Reason and message of what is told of an object."""
    found = (each for each in team.get("events")["items"] if each["involvedObject"]["kind"] == kind)
    return {(each["reason"], each["message"]) for each in found if each["involvedObject"]["name"] == name}


def test_two_quotas_are_warned_about_and_one_may_be_given_up(team: Team, queue: Queue) -> None:
    answer = team.apply(a_job("first", 2))
    assert f"[two-quotas] TenantQuota {team.namespace} and Kueue both count this" in answer
    team.runs(2)
    team.delete("job/first")
    team.runs(0)
    team.may_use({"gpus": "1"}, quotaAuthority="Kueue")
    assert "two-quotas" not in team.apply(a_job("second", 3))
    team.runs(3)
    assert team.tiers() == {("gpu-training", "gpu-training", 1000)}
    queue.holds(3)
    team.shows("charged elsewhere")


@pytest.fixture
def pairs(team: Team) -> Iterator["Pairs"]:
    """Trainings of equal tier, two in each queue."""
    team.may_use({"gpus": "80"})
    found = Pairs(team)
    yield found
    for queue in found.queues:
        queue.remove()


class Pairs:
    """Queues of two GPUs, each with two trainings of one GPU that are equal but for when Kueue admitted them."""

    def __init__(self, team: Team) -> None:
        self.team = team
        self.queues: list[Queue] = []

    def start(self, rounds: int) -> None:
        """Start in each queue the first, and then the second."""
        self.queues = [Queue(self.team, f"queue-{number}", 2) for number in range(rounds)]
        for place, which in enumerate(("first", "second"), start=1):
            self._queued(which, "gpu-batch")
            self.team.runs(place * rounds)
            time.sleep(1)  # Kueue writes whole seconds

    def evicted_for_one_of_a_higher_tier(self) -> list[str]:
        """Return which of each two Kueue evicts."""
        self._queued("urgent", "gpu-training")
        self.team.eventually(lambda: len(self._evicted()) == len(self.queues), "an eviction in each queue")
        return self._evicted()

    def boosts(self) -> set[tuple[str, str]]:
        """Return the boosts of the first pods and of the second ones."""
        found = (each["metadata"] for each in self.team.get(WORKLOADS)["items"])
        return {(_which(each), each.get("annotations", {}).get(BOOST, "")) for each in found}

    def _queued(self, which: str, tier: str) -> None:
        jobs = [a_job(f"{which}-{queue.name}") for queue in self.queues]
        for job, queue in zip(jobs, self.queues, strict=True):
            job["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": queue.name, "gpu-tiers.dev/tier": tier}
            job["spec"]["template"]["metadata"] = {"annotations": {"gpu-tiers.dev/checkpoint": "listen"}}
        self.team.apply(*jobs)

    def _evicted(self) -> list[str]:
        return sorted(_which(each["metadata"]) for each in self.team.get(WORKLOADS)["items"] if _is_evicted(each))


def _which(workload: Tree) -> str:
    return str(workload["ownerReferences"][0]["name"]).partition("-")[0]


def _is_evicted(workload: Tree) -> bool:
    conditions = workload.get("status", {}).get("conditions", [])
    return any(each["type"] == "Evicted" and each["status"] == "True" for each in conditions)


def test_of_equal_trainings_kueue_alone_evicts_the_one_that_it_admitted_last(pairs: Pairs) -> None:
    pairs.start(3)
    assert pairs.evicted_for_one_of_a_higher_tier() == ["second"] * 3
    assert {boost for _, boost in pairs.boosts()} == {""}


def test_kueue_reads_the_cost_and_evicts_the_one_that_has_just_saved(
    team: Team, pairs: Pairs, hearing: Installed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In 20 of 20 queues, and the one that it would have evicted alone has saved 50 minutes ago."""
    pairs.start(20)
    for pod in team.pods():
        ago = 1 if pod["metadata"]["name"].startswith("first") else 50 * 60
        progress = {"step": 9000, "last_saved_step": 8000, "last_saved_at": time.time() - ago}
        sender(pod, tmp_path, monkeypatch)(token_for(hearing, pod), progress)
        began(hearing, pod, minutes=120)  # after its report: until then it would seem to have saved never
    team.eventually(lambda: pairs.boosts() == {("first", ""), ("second", "3")}, "50 GPU-minutes at risk")
    assert pairs.evicted_for_one_of_a_higher_tier() == ["first"] * 20
