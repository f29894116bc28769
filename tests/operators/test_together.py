"""The operators at once: what the webhook counts of their work, and what follows when it dies in the middle of it."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.apiserver.installed import Installed

from .samples import a_jobset, a_pytorchjob, a_raycluster, an_lws
from .team import Team, Tree

pytestmark = [
    pytest.mark.apiserver,
    pytest.mark.usefixtures("jobset", "lws", "kuberay", "training_operator"),
]

MULTIKUEUE = "kueue.x-k8s.io/multikueue"
QUIET_SECONDS = 50
WATCHED = (
    "api/v1/namespaces/{}/pods",
    "apis/batch/v1/namespaces/{}/jobs",
    "apis/apps/v1/namespaces/{}/statefulsets",
    "apis/jobset.x-k8s.io/v1alpha2/namespaces/{}/jobsets",
    "apis/leaderworkerset.x-k8s.io/v1/namespaces/{}/leaderworkersets",
    "apis/ray.io/v1/namespaces/{}/rayclusters",
    "apis/kubeflow.org/v1/namespaces/{}/pytorchjobs",
)
PODS, ALL_GPUS = 5 + 4 + 3 + 4, 4 + 4 + 2 + 4
"""Of one workload of each: the store of the JobSet and the head of the RayCluster ask for no GPU."""


def one_of_each(prefix: str) -> list[Tree]:
    """A workload of each operator."""
    return [
        a_jobset(f"{prefix}-jobset"),
        an_lws(f"{prefix}-lws", gpus=1),
        a_raycluster(f"{prefix}-raycluster"),
        a_pytorchjob(f"{prefix}-pytorchjob"),
    ]


def test_what_multikueue_runs_in_another_cluster_books_nothing_here(team: Team) -> None:
    team.may_use({"gpus": str(ALL_GPUS)})
    elsewhere = [a_jobset("jobset", managedBy=MULTIKUEUE), a_raycluster("raycluster", managedBy=MULTIKUEUE)]
    elsewhere.append(a_pytorchjob("pytorchjob", managedBy=MULTIKUEUE))
    assert team.apply(*elsewhere) == ""
    assert team.apply(*one_of_each("here")) == ""
    assert {each["metadata"]["name"].partition("-")[0] for each in team.runs(PODS)} == {"here"}
    team.shows(f"total {ALL_GPUS}/{ALL_GPUS}")


def test_an_outage_of_the_webhook_costs_time_and_no_pod(team: Team, installed: Installed) -> None:
    team.may_use({"gpus": str(2 * ALL_GPUS)})
    assert team.apply(*one_of_each("before")) == ""
    installed.kill()
    try:
        assert team.apply(*one_of_each("meanwhile")) == "", "workloads are let through, and their pods wait"
    finally:
        installed.restart()
    team.runs(2 * PODS)
    team.shows(f"total {2 * ALL_GPUS}/{2 * ALL_GPUS}")
    assert {tier for tier, _, _ in team.tiers()} == {"gpu-training", "gpu-serving", "gpu-interactive"}
    assert quiet(team) == []


def quiet(team: Team) -> list[str]:
    """Return the changes of the workloads and their pods in the next 50 seconds; none, if no controllers fight."""

    def watch(path: str) -> str:
        place = "/" + path.format(team.namespace)
        since = team.kubectl("get", "--raw", place).json()["metadata"]["resourceVersion"]
        asked = f"{place}?watch=1&resourceVersion={since}&timeoutSeconds={QUIET_SECONDS}"
        return str(team.kubectl("get", "--raw", asked).stdout)

    with ThreadPoolExecutor(len(WATCHED)) as watchers:
        return [each for each in watchers.map(watch, WATCHED) if each]
