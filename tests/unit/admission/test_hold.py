"""Where pods wait for their turn, whoever applies something reads that it waits, and that alone which can."""

from decimal import Decimal

from tests.builders import a_job, a_pod, a_replicaset, a_tenant, a_workload
from tests.builders.world import Answer, World
from webhook.ledger.protocol import Holding
from webhook.policy.quota.charges import Charge
from webhook.policy.quota.held import KeptRow


def says_it_waits(answer: Answer) -> bool:
    return any("waits for its turn" in each for each in answer.warnings)


async def test_nobody_is_told_that_pods_wait_which_name_their_node() -> None:
    """They take no gate, so they are refused until there is room."""
    world = World(a_tenant(onExceed="Hold").allowing("2"))
    assert (await world.create(a_pod().asking(2).having("spec.nodeName", "gpu-7"))).allowed
    on_a_node = a_job(a_pod().asking(1).having("spec.nodeName", "gpu-7"))
    assert (await world.validate(on_a_node)).warnings[-1] == (
        "tenant alpha: the total is at 2 of 2 GPUs; this Job asks for 1 in all, so none of its pods can start now"
    )
    elsewhere = await world.validate(a_job(a_pod().asking(1)))
    assert elsewhere.warnings[-1].endswith("so its pods wait for their turn (onExceed: Hold)")


async def test_who_makes_a_pod_alone_is_told_that_it_waits() -> None:
    """Of a workload's pods that is said when it is applied."""
    owner = a_replicaset()
    world = World(a_tenant(onExceed="Hold").allowing("2"), owner)
    assert not says_it_waits(await world.create(a_pod().asking(1)))
    await world.create(a_pod().asking(2).having("spec.nodeName", "gpu-7"))
    alone = await world.create(a_pod().asking(1), dryRun=True)
    assert alone.allowed
    assert alone.warnings[-1] == (
        "tenant alpha: the total is at 2 of 2 GPUs; this pod asks for 1, so it waits for its turn (onExceed: Hold)"
    )
    made = await world.create(a_pod().asking(1).owned_by(owner))
    assert made.allowed
    assert not says_it_waits(made)


async def test_who_names_its_node_takes_the_place_of_a_preempted_pod_of_its_own_past_the_line() -> None:
    """It takes nothing that is not counted already: the two are charged once."""
    owner = a_replicaset()
    world = World(a_tenant(onExceed="Hold").allowing("2"), owner)
    world.ledger.kept = lambda _: {"total": KeptRow("gpu-training")}  # type: ignore[method-assign]
    uid, charge = owner.json()["metadata"]["uid"], Charge(Decimal(1), "gpu-batch")
    world.ledger.observe("victim", Holding("team-alpha", charge, 30.0, uid, preempted=True, name="victim"))
    pod = a_pod().of_tier("gpu-batch").asking(1).owned_by(owner).having("spec.nodeName", "gpu-7")
    assert (await world.create(pod)).allowed
    another = await world.create(pod.named("another"))
    assert not another.allowed
    assert "is kept for pods that wait before this pod" in another.sentence


async def test_who_applies_a_workload_is_told_of_those_that_are_queued_before_it() -> None:
    """Its row has room, and the queue keeps that for a workload of the same tier."""
    world = World(a_tenant(onExceed="Hold").allowing("4"))
    job = a_job(a_pod().asking(1).of_tier("gpu-batch"))
    assert not any("wait for their turn" in each for each in (await world.validate(job)).warnings)
    world.ledger.kept = lambda _: {"total": KeptRow("gpu-batch")}  # type: ignore[method-assign]
    told = "the total is at 0 of 4 GPUs, and 4 more are reserved for workloads queued earlier; "
    for dry_run in (False, True):
        assert (await world.validate(job, dryRun=dry_run)).warnings[-1] == (
            f"tenant alpha: {told}this Job asks for 1 in all, so its pods wait for their turn (onExceed: Hold)"
        )
    alone = await world.create(a_pod().asking(1).of_tier("gpu-batch"))
    assert alone.warnings[-1] == (f"tenant alpha: {told}this pod asks for 1, so it waits for its turn (onExceed: Hold)")
    higher = await world.validate(a_job(a_pod().asking(1).of_tier("gpu-training")))
    assert not any("wait for their turn" in each for each in higher.warnings), "it comes before those that wait"


async def test_a_cronjob_is_told_of_its_runs() -> None:
    world = World(a_tenant(onExceed="Hold").allowing("2"))
    assert (await world.create(a_pod().asking(2).having("spec.nodeName", "gpu-7"))).allowed
    template = {"spec": {"template": a_pod().asking(1).template()}}
    cron_job = a_workload("batch/v1", "CronJob", schedule="@daily", jobTemplate=template)
    assert (await world.validate(cron_job)).warnings[-1] == (
        "tenant alpha: the total is at 2 of 2 GPUs; each run of this CronJob asks for 1 in all. If that has not "
        "changed when a run begins, its pods wait for their turn (onExceed: Hold)"
    )
