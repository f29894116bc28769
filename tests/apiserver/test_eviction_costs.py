"""What other schedulers are told of an eviction, on a real API server. Neither Kueue nor Volcano runs.

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

WORKLOADS = WorkloadKind("kueue.x-k8s.io", "Workload", "workloads", ("v1beta2",))
WORKLOAD = "workloads.kueue.x-k8s.io"
BOOST, SAVED = "kueue.x-k8s.io/priority-boost", "volcano.sh/last-checkpoint-time"


@pytest.fixture
def telling(installed: Installed) -> Iterator[Installed]:
    """The webhook that tells both."""
    add_crds(installed.cluster, crd(WORKLOADS))
    installed.upgrade(policy=policy("Write"))
    yield installed
    installed.upgrade()
    delete_crd(installed.cluster, WORKLOAD)


def policy(telling: str) -> Tree:
    return example_policy() | {"evictionCost": {"kueue": telling, "volcano": telling}}


def training(telling: Installed, namespace: str, name: str, node: str, minutes: float, scheduler: str = "") -> str:
    """The uid of a batch training that began so many minutes ago, and has told of no save; of 2 GPUs."""
    where = {"schedulerName": scheduler, "nodeName": node} if scheduler else {"node": node}
    pod = gpu_pod(name, 2, tier="gpu-batch", **where)
    pod["spec"]["containers"][0]["command"] = ["torchrun", "train.py"]
    assert telling.create(pod, namespace).code == 0
    telling.eventually(lambda: telling.get(f"pod/{name}", namespace)["status"]["phase"] == "Running", name)
    found = telling.get(f"pod/{name}", namespace)
    began(telling, found, minutes)
    return str(found["metadata"]["uid"])


def queue(telling: Installed, namespace: str, name: str, uid: str) -> None:
    """Kueue's Workload of a pod."""
    owner = {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": uid}
    metadata = {"name": name, "ownerReferences": [owner]}
    workload = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload", "metadata": metadata}
    assert telling.create(workload | {"spec": {"priority": 400}}, namespace).code == 0


def annotation(telling: Installed, what: str, namespace: str, key: str) -> str:
    found: Tree = telling.cluster.kubectl("get", what, f"--namespace={namespace}", "-o=json").json()
    return str(found["metadata"].get("annotations", {}).get(key, ""))


def test_kueue_is_told_by_a_boost_that_goes_with_the_pod_and_leaves_anothers_alone(
    telling: Installed, namespace: str, node: str
) -> None:
    for name, minutes in (("old", 50.0), ("new", 1.0)):
        queue(telling, namespace, name, training(telling, namespace, name, node, minutes))

    def boosts() -> dict[str, str]:
        return {name: annotation(telling, f"{WORKLOAD}/{name}", namespace, BOOST) for name in ("old", "new")}

    telling.eventually(lambda: boosts() == {"old": "4", "new": ""}, "100 GPU-minutes at risk, and 2")
    by_hand = ("annotate", "--overwrite", f"--namespace={namespace}", f"{WORKLOAD}/new", f"{BOOST}=9")
    telling.cluster.kubectl(*by_hand)
    before = telling.metric("gpu_tiers_eviction_cost_writes_total", scheduler="Kueue", outcome="written")
    telling.cluster.kubectl("delete", "pod/old", f"--namespace={namespace}", "--wait=false")
    telling.eventually(lambda: boosts() == {"old": "", "new": "9"}, "no boost without a pod")
    assert telling.metric("gpu_tiers_eviction_cost_writes_total", scheduler="Kueue", outcome="written") == before + 1


def test_volcano_is_told_when_its_pods_saved_last_until_that_is_taken_back(
    telling: Installed, namespace: str, node: str
) -> None:
    training(telling, namespace, "old", node, 50, "volcano")
    training(telling, namespace, "kubernetes", node, 50)

    def saved(name: str) -> str:
        return annotation(telling, f"pod/{name}", namespace, SAVED)

    telling.eventually(lambda: bool(saved("old")), "the time of its start")
    age = datetime.now(UTC) - datetime.fromisoformat(saved("old"))
    assert timedelta(minutes=49) < age < timedelta(minutes=60)
    assert not saved("kubernetes"), "nobody reads it there"
    telling.upgrade(policy=policy("Remove"))
    telling.eventually(lambda: not saved("old"), "nothing that is ours")
