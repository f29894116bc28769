"""The number of pods that each kind of workload makes, and their GPUs: as its operator counts."""

from decimal import Decimal

import pytest

from tests.builders import WorkloadBuilder, a_policy, a_workload
from tests.builders.operators import GPU_POD
from tests.unit.policy.workloads.counted import GPUS
from webhook.objects.group_kind import GroupKind
from webhook.policy.quota.demand import demand_of
from webhook.policy.workloads.kind_table import BUILT_IN


def gpus_of(workload: WorkloadBuilder) -> Decimal:
    members = workload.view().members
    return sum((demand_of(member.template, (), a_policy()) * member.count for member in members), Decimal(0))


@pytest.mark.parametrize(("workload", "gpus"), GPUS.values(), ids=GPUS)
def test_the_gpus_of(workload: WorkloadBuilder, gpus: int) -> None:
    assert gpus_of(workload) == Decimal(gpus)


def test_every_kind_of_the_table_is_tried_here() -> None:
    tried = {
        GroupKind(workload.json()["apiVersion"].rpartition("/")[0], workload.json()["kind"])
        for workload, _ in GPUS.values()
    }
    like_pytorchjob = {"TFJob", "XGBoostJob", "JAXJob", "PaddleJob", "ReplicaSet"}
    with_templates = {kind for kind, row in BUILT_IN.by_kind.items() if row.templates}
    assert with_templates - tried == {
        kind for kind in BUILT_IN.by_kind if kind.kind in like_pytorchjob and kind.group in ("kubeflow.org", "apps")
    }


@pytest.mark.parametrize("kind", ["TFJob:tf", "XGBoostJob:xgb", "JAXJob:jax", "PaddleJob:paddle", "MPIJob:mpi"])
def test_the_other_kubeflow_jobs_differ_in_one_field(kind: str) -> None:
    name, _, field = kind.partition(":")
    job = a_workload(
        "kubeflow.org/v1", name, **{f"{field}ReplicaSpecs": {"Worker": {"replicas": 2, "template": GPU_POD}}}
    )
    assert gpus_of(job) == 2
