"""A company's own operator, told of in the policy file: its objects and its pods, on a real API server."""

import json
from collections.abc import Iterator

import pytest

from installation.examples import example_policy
from installation.workload_crds import WorkloadKind, crd
from localcluster.crds import add_crds, delete_crd

from .installed import Installed, gpu_pod

pytestmark = pytest.mark.apiserver

EXPERIMENT = {
    "group": "ml.example.com",
    "kind": "Experiment",
    "plural": "experiments",
    "type": "training",
    "templates": [{"path": "spec.workers.*.template", "replicas": "spec.workers.*.count"}],
}


@pytest.fixture
def taught(installed: Installed) -> Iterator[Installed]:
    """The webhook whose policy knows Experiments."""
    add_crds(installed.cluster, crd(WorkloadKind("ml.example.com", "Experiment", "experiments", ("v1",))))
    installed.upgrade(policy=example_policy() | {"kinds": [EXPERIMENT]})
    yield installed
    installed.upgrade()
    delete_crd(installed.cluster, "experiments.ml.example.com")


def test_a_kind_of_the_policy_file_is_judged_like_one_of_the_table(taught: Installed, namespace: str) -> None:
    workers = [{"count": 4, "template": {"spec": gpu_pod("x", 2)["spec"]}}]
    experiment = {
        "apiVersion": "ml.example.com/v1",
        "kind": "Experiment",
        "metadata": {"name": "sweep"},
        "spec": {"workers": workers},
    }
    taught.tenant("epsilon", namespace, quotas=[{"tier": "gpu-training", "gpus": "6"}])
    try:
        taught.eventually(lambda: bool(taught.create(experiment, namespace, dry_run=True).code), "an answer")
        refused = taught.create(experiment, namespace)
        assert (
            'admission webhook "ml.example.com.workloads.gpu-tiers.dev" denied the request: tenant epsilon: '
            "gpu-training allows 6 GPUs; this Experiment asks for 8 in all."
        ) in refused.stderr
        workers[0]["count"] = 3
        uid = json.loads(taught.create(experiment, namespace).stdout)["metadata"]["uid"]
        pod = gpu_pod("sweep-0", 2)
        owner = {"apiVersion": "ml.example.com/v1", "kind": "Experiment", "name": "sweep", "uid": uid}
        pod["metadata"]["ownerReferences"] = [{**owner, "controller": True}]
        made = json.loads(taught.create(pod, namespace).stdout)
        assert made["spec"]["priorityClassName"] == "gpu-training"
        assert made["metadata"]["annotations"]["gpu-tiers.dev/assigned-by"] == (
            "workload-type: training, by its kind, Experiment/sweep"
        )
    finally:
        taught.api.delete("tenantquota/epsilon")
