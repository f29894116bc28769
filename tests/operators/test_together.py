"""All operators at once: the webhook dies in the middle of their work, and then nobody fights with anybody."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.apiserver.installed import Installed

from .samples import a_jobset, a_pytorchjob, a_raycluster, a_trainjob, a_volcano_job, an_lws
from .team import Team, Tree
from .volcano import begins

pytestmark = [
    pytest.mark.apiserver,
    pytest.mark.usefixtures("jobset", "lws", "kuberay", "training_operator", "trainer", "volcano"),
]

QUIET_SECONDS = 50
WATCHED = (
    "api/v1/namespaces/{}/pods",
    "apis/batch/v1/namespaces/{}/jobs",
    "apis/apps/v1/namespaces/{}/statefulsets",
    "apis/jobset.x-k8s.io/v1alpha2/namespaces/{}/jobsets",
    "apis/leaderworkerset.x-k8s.io/v1/namespaces/{}/leaderworkersets",
    "apis/ray.io/v1/namespaces/{}/rayclusters",
    "apis/kubeflow.org/v1/namespaces/{}/pytorchjobs",
    "apis/trainer.kubeflow.org/v1alpha1/namespaces/{}/trainjobs",
    "apis/batch.volcano.sh/v1alpha1/namespaces/{}/jobs",
)
PODS = {"jobset": 5, "lws": 4, "raycluster": 3, "pytorchjob": 4, "trainjob": 4, "volcano": 4}


def one_of_each(prefix: str) -> list[Tree]:
    """A workload of each operator, 22 GPUs in all."""
    return [
        a_jobset(f"{prefix}-jobset"),
        an_lws(f"{prefix}-lws", gpus=1),
        a_raycluster(f"{prefix}-raycluster"),
        a_pytorchjob(f"{prefix}-pytorchjob"),
        a_trainjob(f"{prefix}-trainjob"),
        a_volcano_job(f"{prefix}-volcano"),
    ]


def test_an_outage_of_the_webhook_costs_time_and_no_pod(team: Team, installed: Installed) -> None:
    team.may_use({"gpus": "44"})
    assert team.apply(*one_of_each("before")) == ""
    installed.kill()
    try:
        print(team.apply(*one_of_each("meanwhile")))
    finally:
        installed.restart()
    print(team.apply(*one_of_each("meanwhile")))
    for prefix in ("before", "meanwhile"):
        begins(team, f"{prefix}-volcano")
    team.runs(2 * sum(PODS.values()))
    team.shows("total 44/44")
    assert quiet(team) == []


def quiet(team: Team) -> list[str]:
    """What happens to the workloads and their pods in the next 50 seconds; nothing, if nobody fights."""

    def watch(path: str) -> str:
        place = "/" + path.format(team.namespace)
        since = team.kubectl("get", "--raw", place).json()["metadata"]["resourceVersion"]
        asked = f"{place}?watch=1&resourceVersion={since}&timeoutSeconds={QUIET_SECONDS}"
        return str(team.kubectl("get", "--raw", asked).stdout)

    with ThreadPoolExecutor(len(WATCHED)) as watchers:
        return [each for each in watchers.map(watch, WATCHED) if each]
