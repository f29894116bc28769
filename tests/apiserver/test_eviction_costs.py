"""Evictions as other schedulers learn of them, on a real API server.

With a real Kueue, which evicts by it: tests/operators/test_kueue.py. No release of Volcano reads its annotation.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from installation.examples import example_policy
from installation.workload_crds import WorkloadKind, crd
from localcluster.crds import add_crds, delete_crd

from .installed import Installed, Tree, gpu_pod
from .reporting import began

pytestmark = pytest.mark.apiserver

KUEUES = (
    WorkloadKind("kueue.x-k8s.io", "Workload", "workloads", ("v1beta2",)),
    WorkloadKind("kueue.x-k8s.io", "WorkloadPriorityClass", "workloadpriorityclasses", ("v1beta2",), "Cluster"),
)
WORKLOAD = "workloads.kueue.x-k8s.io"
BOOST, SAVED = "kueue.x-k8s.io/priority-boost", "volcano.sh/last-checkpoint-time"


@pytest.fixture(scope="module")
def telling(installed: Installed) -> Iterator[Installed]:
    """The webhook that tells both."""
    add_crds(installed.cluster, *map(crd, KUEUES))
    classes = {"kueue": {"workloadPriorityClasses": True}}
    installed.upgrade(policy=example_policy() | classes | {"evictionCost": both("Write")})
    yield installed
    installed.upgrade()
    for each in KUEUES:
        delete_crd(installed.cluster, f"{each.plural}.{each.group}")


def both(telling: str) -> Tree:
    return {"kueue": telling, "volcano": telling}


def training(telling: Installed, namespace: str, name: str, node: str, minutes: float, **pod: str) -> Tree:
    """A Job of the tier gpu-batch, and its pod of 2 GPUs, which began so many minutes ago and told of no save."""
    spec = gpu_pod("x", 2, node=node, restartPolicy="Never", **pod)["spec"]
    spec["containers"][0]["command"] = ["torchrun", "train.py"]
    template = {"metadata": {"labels": {"gpu-tiers.dev/tier": "gpu-batch", "run": name}}, "spec": spec}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": {"template": template}}
    assert telling.create(job, namespace).code == 0

    def running() -> list[Tree]:
        pods = telling.api.get("pods", namespace, labelSelector=f"run={name}")["items"]
        return [each for each in pods if each["status"]["phase"] == "Running"]

    telling.eventually(lambda: bool(running()), name)
    (found,) = running()
    began(telling, found, minutes)
    return telling.get(f"job/{name}", namespace)


def queue(telling: Installed, job: Tree) -> None:
    """Kueue's Workload of a Job, of the same name here."""
    metadata = job["metadata"]
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": metadata["name"], "uid": metadata["uid"]}
    named = {"name": metadata["name"], "ownerReferences": [owner]}
    workload = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload", "metadata": named}
    assert telling.create(workload | {"spec": {"priority": 400}}, metadata["namespace"]).code == 0


def annotation(telling: Installed, what: str, namespace: str, key: str) -> str:
    found: Tree = telling.api.get(what, namespace)
    return str(found["metadata"].get("annotations", {}).get(key, ""))


def test_kueue_reads_a_boost_that_goes_with_the_pods_and_leaves_anothers_alone(
    telling: Installed, namespace: str, node: str
) -> None:
    for name, minutes in (("old", 50.0), ("new", 1.0)):
        queue(telling, training(telling, namespace, name, node, minutes))

    def boosts() -> dict[str, str]:
        return {name: annotation(telling, f"{WORKLOAD}/{name}", namespace, BOOST) for name in ("old", "new")}

    telling.eventually(lambda: boosts() == {"old": "4", "new": ""}, "100 GPU-minutes at risk, and 2")
    by_hand = ("annotate", "--overwrite", f"--namespace={namespace}", f"{WORKLOAD}/new", f"{BOOST}=9")
    telling.cluster.kubectl(*by_hand)
    before = telling.metric("gpu_tiers_eviction_cost_writes_total", scheduler="Kueue", outcome="written")
    suspend = ("patch", "job/old", f"--namespace={namespace}", "-p", '{"spec": {"suspend": true}}')
    telling.cluster.kubectl(*suspend)
    telling.eventually(lambda: boosts() == {"old": "", "new": "9"}, "no boost for what Kueue has evicted")
    assert telling.metric("gpu_tiers_eviction_cost_writes_total", scheduler="Kueue", outcome="written") == before + 1


def test_volcano_reads_when_its_pods_saved_last_until_that_is_taken_back(
    telling: Installed, namespace: str, node: str
) -> None:
    for name, scheduler in (("theirs", "volcano"), ("kubernetes", "default-scheduler")):
        training(telling, namespace, name, node, 50, schedulerName=scheduler, nodeName=node)

    def saved(name: str) -> str:
        pods = telling.api.get("pods", namespace, labelSelector=f"run={name}")["items"]
        return str(pods[0]["metadata"].get("annotations", {}).get(SAVED, ""))

    telling.eventually(lambda: bool(saved("theirs")), "the time of its start")
    age = datetime.now(UTC) - datetime.fromisoformat(saved("theirs"))
    assert timedelta(minutes=49) < age < timedelta(minutes=60)
    assert not saved("kubernetes"), "nobody reads it there"
    with telling.policy_with(evictionCost=both("Remove")):
        telling.eventually(lambda: not saved("theirs"), "nothing that is ours")
