"""A workload that another controller manages makes no pods here, so it books nothing; pods are always charged."""

import pytest

from tests.builders import WorkloadBuilder, a_deployment, a_job, a_pod, a_pytorchjob, a_tenant
from tests.builders.world import FakeApi
from tests.unit.policy.workloads.counted import GPUS
from webhook.objects.group_kind import GroupKind
from webhook.policy.workloads.kind_table import BUILT_IN
from webhook.policy.workloads.workload import manager_elsewhere

MULTIKUEUE = "kueue.x-k8s.io/multikueue"


def kind_of(built: WorkloadBuilder) -> GroupKind:
    tree = built.json()
    return GroupKind(str(tree["apiVersion"]).rpartition("/")[0], str(tree["kind"]))


MANAGED_BY = {kind: row.managed_by for kind, row in BUILT_IN.by_kind.items() if row.managed_by}
FIRST = {kind_of(built): built for built, gpus in reversed(GPUS.values()) if gpus and kind_of(built) in MANAGED_BY}


def managed(built: WorkloadBuilder, by: str) -> WorkloadBuilder:
    return built.having(MANAGED_BY[kind_of(built)].field, by)


def a_training(gpus: int = 8) -> WorkloadBuilder:
    return a_job(a_pod().asking(gpus), name="night")


@pytest.mark.parametrize("kind", FIRST, ids=str)
async def test_it_is_never_refused_for_its_quota_and_books_nothing(kind: GroupKind) -> None:
    built = managed(FIRST[kind], MULTIKUEUE)
    world = FakeApi(a_tenant().allowing("1"), built)
    applied = await world.validate(built)
    assert applied.allowed, applied.sentence
    assert (await world.create(a_pod().asking(1))).allowed, "the only GPU is still free"


@pytest.mark.parametrize("kind", FIRST, ids=str)
def test_its_own_controller_is_no_other(kind: GroupKind) -> None:
    for own in MANAGED_BY[kind].own:
        assert manager_elsewhere(managed(FIRST[kind], own).json(), BUILT_IN.by_kind[kind]) == ""
    assert manager_elsewhere(FIRST[kind].json(), BUILT_IN.by_kind[kind]) == ""


@pytest.mark.parametrize("own", ["kubernetes.io/job-controller", 7, None])
async def test_a_job_of_its_own_controller_is_booked(own: object) -> None:
    job = a_training().having("spec.managedBy", own)
    refused = await FakeApi(a_tenant().allowing("4"), job).validate(job)
    assert "tenant alpha" in refused.sentence


async def test_a_field_that_its_kind_does_not_have_frees_nothing() -> None:
    job = a_pytorchjob(a_pod().asking(8), workers=1).having("spec.managedBy", MULTIKUEUE)
    assert not (await FakeApi(a_tenant().allowing("4"), job).validate(job)).allowed
    server = a_deployment(a_pod().asking(8)).having("spec.managedBy", MULTIKUEUE)
    assert not (await FakeApi(a_tenant().allowing("4"), server).validate(server)).allowed


async def test_pods_that_name_it_as_their_owner_are_charged_one_by_one() -> None:
    """The owner may be a controller of this cluster, or made up by a tenant who hopes for uncounted GPUs."""
    job = a_training(2).having("spec.parallelism", 4).having("spec.managedBy", "example.com/own-controller")
    world = FakeApi(a_tenant().allowing("4"), job)
    assert (await world.validate(job)).allowed
    pods = [a_pod().asking(2).named(f"night-{number}").owned_by(job) for number in range(3)]
    answers = [await world.create(pod) for pod in pods]
    assert [answer.allowed for answer in answers] == [True, True, False]
    assert "the total is at 4 of 4 GPUs; this pod asks for 2" in answers[2].sentence


async def test_what_its_own_controller_gets_back_is_booked_then() -> None:
    """No API server allows that change today."""
    job = a_training(2).having("spec.parallelism", 2)
    world = FakeApi(a_tenant().allowing("4"), job)
    elsewhere = job.having("spec.managedBy", MULTIKUEUE)
    assert (await world.validate(elsewhere)).allowed
    assert (await world.update(elsewhere, job)).allowed
    assert not (await world.create(a_pod().asking(1))).allowed


async def test_nothing_is_said_of_a_turn_for_which_none_of_its_pods_waits() -> None:
    job = a_training().having("spec.activeDeadlineSeconds", 60).having("spec.backoffLimit", 20)
    holding = a_tenant().allowing("4").having("spec.onExceed", "Hold")
    elsewhere = job.having("spec.managedBy", MULTIKUEUE)
    assert (await FakeApi(holding, elsewhere).validate(elsewhere)).warnings == []
