"""The real KAI scheduler beside ours: it ranks by our tiers, and evicts by deletion.

Without `--update-pod-eviction-condition`, as KAI is by default, nothing on an evicted pod says that it was evicted.
"""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from localcluster.operators import RunningOperator, kai
from tests.apiserver.installed import Installed
from tests.builders.nodes import quiet_node

from .conftest import Start
from .kai import (
    SCHEDULER,
    a_job,
    a_queue,
    a_replicaset,
    bound,
    ended,
    evict_event,
    for_kai,
    groups,
    in_queue,
    names,
    reasons,
    waits,
)
from .samples import a_pytorchjob
from .team import LOST_NODE, Team, Tree, hooked

pytestmark = [pytest.mark.apiserver, pytest.mark.usefixtures("training_operator", "placing")]

LISTENS = {"gpu-tiers.dev/checkpoint": "listen", "gpu-tiers.dev/checkpoint-python-path": "none"}
HAS_NONE = {"gpu-tiers.dev/checkpoint": "none"}
TELLS = "--update-pod-eviction-condition"


@pytest.fixture(scope="module")
def scheduler(start: Start) -> RunningOperator:
    """KAI's scheduler, which writes a condition on what it evicts."""
    telling = replace(kai.SCHEDULER, arguments=(*kai.SCHEDULER.arguments, TELLS))
    return start(telling)


@pytest.fixture(scope="module")
def placing(scheduler: RunningOperator, start: Start) -> Iterator[None]:
    """Start the parts of KAI that place pods, for one file's tests."""
    others = [start(kai.POD_GROUPER), start(kai.BINDER)]
    yield
    for each in (*others, scheduler):
        each.end()


@pytest.fixture
def by_default(scheduler: RunningOperator, start: Start) -> Iterator[None]:
    """KAI's scheduler as KAI starts it where nobody says otherwise."""
    scheduler.kill()
    plain = start(kai.SCHEDULER)
    yield
    plain.kill()
    scheduler.start()


@pytest.fixture
def queue(team: Team) -> Iterator[str]:
    """A queue of KAI with 4 GPUs."""
    above, name = f"{team.namespace}-all", f"{team.namespace}-research"
    team.apply(a_queue(above, 4), a_queue(name, 4, parent=above))
    yield name
    team.kubectl("delete", "queues.scheduling.run.ai", above, name)


def running(team: Team, name: str) -> int:
    """Return how many pods of that workload run."""
    pods = (each for each in team.pods() if each["status"]["phase"] == "Running")
    return sum(each["metadata"]["name"].startswith(f"{name}-") for each in pods)


def evicted_by_training(team: Team, queue: str) -> list[Tree]:
    """Two pods of a PyTorchJob take the places of two of the Job `night`: those as they were at their end."""
    with ended(team) as gone:
        team.apply(for_kai(in_queue(a_pytorchjob("bert", workers=1), queue, "gpu-training")))
        team.eventually(lambda: running(team, "bert") == 2, "the training")
    return gone


def test_kai_ranks_by_our_tiers(team: Team, queue: str) -> None:
    assert team.apply(in_queue(a_job("night", 2), queue, "gpu-batch")) == LOST_NODE
    assert team.apply(for_kai(in_queue(a_pytorchjob("bert", workers=1), queue, "gpu-training"))) == ""
    team.runs(4)
    assert team.tiers() == {("gpu-batch", "gpu-batch", 400), ("gpu-training", "gpu-training", 1000)}
    team.shows("gpu-training 2/8, total 4/16")
    ranks = [
        (each["priorityClassName"], each.get("preemptibility", ""), each["minMember"], each["queue"])
        for each in groups(team)
    ]
    of_batch, of_training = ("gpu-batch", "preemptible", 1, queue), ("gpu-training", "", 2, queue)
    assert sorted(ranks) == [of_batch, of_batch, of_training], "a Job's pods are placed one by one"


def test_what_kai_evicts_is_deleted_and_its_job_goes_on(team: Team, queue: str, installed: Installed) -> None:
    before = installed.metric("gpu_tiers_preemptions_total")
    assert team.apply(in_queue(a_job("night", 4), queue, "gpu-batch", **LISTENS)) == LOST_NODE
    assert [hooked(each) for each in team.runs(4)] == [["train"]] * 4
    gone = evicted_by_training(team, queue)
    assert len(gone) == 2, "as many as are needed, not the whole Job"
    assert reasons(gone) == {("DisruptionTarget", "PreemptionByScheduler")}
    job = team.get("job/night")["status"]
    assert (job["active"], job.get("failed", 0)) == (4, 0), "two run, and two wait again"
    assert "was preempted by higher priority workload" in evict_event(team)
    assert installed.metric("gpu_tiers_preemptions_total") == before, "nothing says so as kube-scheduler does"


@pytest.mark.usefixtures("by_default")
@pytest.mark.parametrize("hook", [LISTENS, HAS_NONE], ids=["listen", "none"])
def test_by_default_an_evicted_pod_says_nothing_and_only_its_exit_code_saves_its_job(
    team: Team, queue: str, hook: dict[str, str]
) -> None:
    team.apply(in_queue(a_job("night", 4), queue, "gpu-batch", **hook))
    team.runs(4)
    assert reasons(evicted_by_training(team, queue)) == set()
    failed = [
        each["type"] for each in team.get("job/night")["status"].get("conditions", []) if each["type"] == "Failed"
    ]
    assert failed == ([] if hook is LISTENS else ["Failed"])


def test_the_pod_in_place_of_an_evicted_one_that_saves_has_its_quota(team: Team, crowded: str) -> None:
    """The victim holds its GPUs for its whole grace, and its ReplicaSet makes the next pod at once."""
    victim = evicted_while_it_saves(team, crowded)
    team.eventually(lambda: names(team, "night") not in ([], [victim]), "the next pod")
    assert "deletionTimestamp" in team.get(f"pod/{victim}")["metadata"]


@pytest.mark.usefixtures("by_default")
def test_by_default_it_waits_for_the_end_of_the_evicted_one(team: Team, crowded: str) -> None:
    evicted_while_it_saves(team, crowded)
    team.shows_event("replicaset/night", "gpu-batch is at 8 of 8 GPUs")
    assert names(team, "night") == []


@pytest.fixture
def crowded(team: Team, installed: Installed) -> Iterator[str]:
    """A node with 8 GPUs, on which pods take their time to end, and a queue for twice as many."""
    node = f"{team.namespace}-node"
    installed.create(quiet_node(node), "")
    team.may_use({"tier": "gpu-batch", "gpus": "8"}, {"gpus": "32"})
    team.apply(a_queue(f"{node}-all", 16), a_queue(node, 16, parent=f"{node}-all"))
    yield node
    team.kubectl("delete", "node", node)
    team.kubectl("delete", "queues.scheduling.run.ai", f"{node}-all", node)


def on_node(node: str) -> Tree:
    """Return the selector that makes KAI place a pod on this node."""
    return {"schedulerName": SCHEDULER, "nodeSelector": {"kubernetes.io/hostname": node}}


def evicted_while_it_saves(team: Team, node: str) -> str:
    """A pod of the ReplicaSet `night` is evicted by a training on its node, and ends only after 200 s: its name."""
    here = on_node(node)
    grace = {"terminationGracePeriodSeconds": 200}
    team.apply(in_queue(a_replicaset("night", 8, **here, **grace), node, "gpu-batch", **HAS_NONE))
    team.eventually(lambda: bound(team, "night"), "a full node")
    [victim] = names(team, "night")
    team.apply(in_queue(a_replicaset("bert", 8, **here), node, "gpu-training", **HAS_NONE))
    team.eventually(lambda: victim not in names(team, "night"), "its eviction")
    return victim


def test_between_queues_shares_decide_and_not_tiers(team: Team, crowded: str) -> None:
    here, another = on_node(crowded), f"{crowded}-night"
    team.apply(a_queue(another, 16, parent=f"{crowded}-all"))
    team.apply(in_queue(a_replicaset("night", 8, **here), another, "gpu-batch"))
    team.eventually(lambda: bound(team, "night"), "a full node")
    [there] = names(team, "night")
    team.apply(in_queue(a_replicaset("bert", 8, **here), crowded, "gpu-training"))
    team.eventually(lambda: bool(waits(team, "bert")), "KAI's answer")
    assert names(team, "night") == [there]


def test_the_tier_that_nobody_evicts_waits_for_a_queue_with_quota_of_its_own(team: Team, queue: str) -> None:
    team.apply(a_queue(queue, 4, quota=0, parent=f"{team.namespace}-all"))
    team.apply(in_queue(a_job("night", 1), queue, "gpu-batch"))
    team.runs(1)
    team.apply(in_queue(a_job("bert", 1), queue, "gpu-training"))
    team.eventually(lambda: "Non-preemptible workload is over quota" in waits(team, "bert"), "KAI's answer")
    team.apply(a_queue(queue, 4, parent=f"{team.namespace}-all"))
    team.runs(2)
