"""A queueing tenant: the person who applies something reads that it waits, and nobody else does."""

from decimal import Decimal

from tests.builders import a_job, a_pod, a_policy, a_pytorchjob, a_replicaset, a_tenant, a_workload
from tests.builders.queues import reserve
from tests.builders.world import Answer, FakeApi
from webhook.ledger.protocol import Booked, Booking, Holding
from webhook.policy.quota.charges import Charge, Shortfall


def says_it_waits(answer: Answer) -> bool:
    return any("is queued" in each for each in answer.warnings)


async def test_nobody_reads_that_pods_wait_which_name_their_node() -> None:
    """They take no gate, so they are refused until there is room."""
    world = FakeApi(a_tenant(onExceed="Hold").allowing("2"))
    assert (await world.create(a_pod().asking(2).having("spec.nodeName", "gpu-7"))).allowed
    on_a_node = a_job(a_pod().asking(1).having("spec.nodeName", "gpu-7"))
    assert (await world.validate(on_a_node)).warnings[-1] == (
        "tenant alpha: the total is at 2 of 2 GPUs; this Job asks for 1 in all, so none of its pods can start now"
    )
    elsewhere = await world.validate(a_job(a_pod().asking(1)))
    assert elsewhere.warnings[-1].endswith("so its pods are queued (Hold)")


async def test_who_makes_a_pod_alone_reads_that_it_waits() -> None:
    """The pods of a workload need no such sentence, because its author read it at apply."""
    owner = a_replicaset()
    world = FakeApi(a_tenant(onExceed="Hold").allowing("2"), owner)
    assert not says_it_waits(await world.create(a_pod().asking(1)))
    await world.create(a_pod().asking(2).having("spec.nodeName", "gpu-7"))
    alone = await world.create(a_pod().asking(1), dryRun=True)
    assert alone.allowed
    assert alone.warnings[-1] == (
        "tenant alpha: the total is at 2 of 2 GPUs; this pod asks for 1, so it is queued (Hold)"
    )
    made = await world.create(a_pod().asking(1).owned_by(owner))
    assert made.allowed
    assert not says_it_waits(made)


QUEUE = a_policy().tiers.rank("gpu-batch")


async def test_a_pod_that_names_its_node_meets_what_the_queue_reserves_as_usage() -> None:
    world = FakeApi(a_tenant(onExceed="Hold").allowing("4"))
    reserve(world.ledger, QUEUE, {"total": 3})
    pod = a_pod().of_tier("gpu-batch").having("spec.nodeName", "gpu-7")
    assert (await world.create(pod.asking(1))).allowed
    assert (await world.create(pod.asking(1))).sentence == (
        "exceeded quota: tenant alpha: the total is at 1 of 4 GPUs, plus 3 reserved for pods queued earlier; this pod "
        "asks for 1. Would fit: gpu-training (3 left), gpu-serving (3 left). See TenantQuota/alpha."
    ), "a higher tier does not meet it"


async def test_a_pod_of_a_higher_tier_does_not_meet_what_the_queue_reserves() -> None:
    world = FakeApi(a_tenant(onExceed="Hold").allowing("4"))
    reserve(world.ledger, QUEUE, {"total": 3})
    pod = a_pod().of_tier("gpu-training").having("spec.nodeName", "gpu-7")
    assert (await world.create(pod.asking(4))).allowed
    assert "is at 4 of 4 GPUs; this pod asks for 1" in (await world.create(pod.asking(1))).sentence


async def test_a_replacement_that_names_its_node_adds_nothing_and_meets_no_reservation() -> None:
    owner = a_replicaset()
    world = FakeApi(a_tenant(onExceed="Hold").allowing("2"), owner)
    uid, charge = owner.json()["metadata"]["uid"], Charge(Decimal(1), "gpu-batch")
    world.ledger.observe("victim", Holding("team-alpha", charge, 30.0, uid, preempted=True, name="victim"))
    reserve(world.ledger, QUEUE, {"total": 1})
    pod = a_pod().of_tier("gpu-batch").asking(1).owned_by(owner).having("spec.nodeName", "gpu-7")
    assert (await world.create(pod)).allowed
    another = await world.create(pod.named("another"))
    assert (
        "the total is at 1 of 2 GPUs, plus 1 reserved for pods queued earlier; this pod asks for 1" in another.sentence
    )


async def test_a_group_of_pods_that_no_workload_makes_meets_the_reservation_as_a_whole() -> None:
    world = FakeApi(a_tenant(onExceed="Hold").allowing("4"))
    reserve(world.ledger, QUEUE, {"total": 2})
    group = {"kueue.x-k8s.io/pod-group-name": "sweep"}, {"kueue.x-k8s.io/pod-group-total-count": "3"}
    pod = a_pod().of_tier("gpu-batch").asking(1).labelled(group[0]).annotated(group[1])
    no_room = "the total is at 0 of 4 GPUs, plus 2 reserved for pods queued earlier; group sweep asks for 3"
    assert no_room in (await world.create(pod)).sentence


async def test_a_booking_says_which_workload_makes_the_pod_and_what_its_tier_is_worth() -> None:
    job = a_job(a_pod().asking(1))
    world = FakeApi(a_tenant(onExceed="Hold").allowing("4"), job)
    booked, book = list[Booking](), world.ledger.book

    async def noted(booking: Booking, *, dry_run: bool = False) -> Booked | Shortfall:
        booked.append(booking)
        return await book(booking, dry_run=dry_run)

    world.ledger.book = noted  # type: ignore[assignment, method-assign]
    pod = a_pod().of_tier("gpu-batch").asking(1).having("spec.nodeName", "gpu-7")
    assert (await world.create(pod)).allowed
    assert (await world.create(pod.owned_by(job))).allowed
    assert [(each.workload, each.rank) for each in booked] == [("", QUEUE), (job.json()["metadata"]["uid"], QUEUE)]


async def test_who_applies_a_workload_reads_what_the_queue_reserves() -> None:
    """Its row has room but for that, which is for a workload of the same tier."""
    world = FakeApi(a_tenant(onExceed="Hold").allowing("4"))
    job = a_job(a_pod().asking(1).of_tier("gpu-batch"))
    assert not any("are queued" in each for each in (await world.validate(job)).warnings)
    reserve(world.ledger, QUEUE, {"total": 4})
    no_room = "the total is at 0 of 4 GPUs, plus 4 reserved for pods queued earlier; "
    for dry_run in (False, True):
        assert (await world.validate(job, dryRun=dry_run)).warnings[-1] == (
            f"tenant alpha: {no_room}this Job asks for 1 in all, so its pods are queued (Hold)"
        )
    alone = await world.create(a_pod().asking(1).of_tier("gpu-batch"))
    assert alone.warnings[-1] == (f"tenant alpha: {no_room}this pod asks for 1, so it is queued (Hold)")
    higher = await world.validate(a_job(a_pod().asking(1).of_tier("gpu-training")))
    assert not any("are queued" in each for each in higher.warnings), "it comes before those that wait"


async def test_a_cronjob_reads_of_its_runs() -> None:
    world = FakeApi(a_tenant(onExceed="Hold").allowing("2"))
    assert (await world.create(a_pod().asking(2).having("spec.nodeName", "gpu-7"))).allowed
    template = {"spec": {"template": a_pod().asking(1).template()}}
    cron_job = a_workload("batch/v1", "CronJob", schedule="@daily", jobTemplate=template)
    assert (await world.validate(cron_job)).warnings[-1] == (
        "tenant alpha: the total is at 2 of 2 GPUs; each run of this CronJob asks for 1 in all. If there is no "
        "more room when a run begins, its pods are queued (Hold)"
    )


async def test_in_warn_no_pod_gets_a_gate_so_the_author_reads_that_the_pods_run() -> None:
    world = FakeApi(a_tenant(onExceed="Hold").allowing("2"), policy=a_policy(mode="Warn"))
    assert (await world.create(a_pod().asking(2).having("spec.nodeName", "gpu-7"))).allowed
    answer = await world.validate(a_job(a_pod().asking(1)))
    assert answer.warnings[-1] == (
        "tenant alpha: the total is at 2 of 2 GPUs; this Job asks for 1 in all, so in Enforce its pods would be queued "
        "(Hold); in mode Warn they run"
    )
    grown = await world.update(a_job(a_pod().asking(1)), a_job(a_pod().asking(2)))
    assert grown.warnings[-1].endswith("would be queued (Hold); in mode Warn they run")
    pod = await world.create(a_pod().asking(1))
    assert pod.patched["spec"].get("schedulingGates") is None
    assert pod.warnings[-1].endswith("in Enforce it would be queued (Hold); in mode Warn it runs")
    assert "would-refuse" not in pod.audit
    gang = await world.validate(a_pytorchjob(a_pod().asking(1), workers=2))
    assert gang.warnings[-1].endswith("in mode Warn they run")
    assert not any(each.startswith("would be refused") for each in gang.warnings)
    too_large = await world.create(a_pod().asking(3))
    assert too_large.warnings[-1].startswith("would be refused: ")
