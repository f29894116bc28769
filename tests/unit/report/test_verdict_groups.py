"""Verdicts as a replica remembers them: by workload and refusal, so that who tries again and again is told once."""

from msgspec import structs

from tests.builders import a_deployment, a_job, a_pod, a_replicaset, a_tenant
from tests.builders.world import FakeApi
from webhook.report.latest import VerdictGroups, VerdictShown
from webhook.server.metrics import Metrics
from webhook.server.record import Recorder

REFUSED = VerdictShown(
    100.0, "Pod", "team-alpha", "sweep-x1", "refused", "gpu-batch", "alpha", "8 of 8", (), "Job/sweep", "over-quota"
)


def test_a_controller_that_tries_again_is_one_group_with_its_last_word() -> None:
    groups = VerdictGroups()
    for number in range(40):
        groups.add(structs.replace(REFUSED, time=100.0 + number, name=f"sweep-x{number}", why=f"{number} of 8"))
    (group,) = groups
    assert (group.times, group.since, group.last.time, group.last.why) == (40, 100.0, 139.0, "39 of 8")


def test_another_refusal_tier_or_outcome_is_another_group_the_latest_first() -> None:
    groups = VerdictGroups()
    others = (
        {"reason": "ceiling"},
        {"tier": "gpu-training"},
        {"outcome": "admitted", "reason": ""},
        {"namespace": "b"},
    )
    for each in ({}, *others, {}):
        groups.add(structs.replace(REFUSED, **each))
    assert [each.times for each in groups] == [2, 1, 1, 1, 1]
    assert [each.last.namespace for each in groups][:2] == ["team-alpha", "b"]


def test_the_group_that_nothing_was_added_to_for_longest_is_forgotten() -> None:
    groups = VerdictGroups(most=2)
    for workload in ("Job/a", "Job/b", "Job/a", "Job/c"):
        groups.add(structs.replace(REFUSED, workload=workload))
    assert [each.last.workload for each in groups] == ["Job/c", "Job/a"]


async def test_a_job_whose_pods_are_to_be_demoted_says_so() -> None:
    """The page would otherwise say `admitted gpu-training` of the Job, and `admitted gpu-batch` of its pod."""
    rows = [{"tier": "gpu-training", "gpus": "2"}, {"gpus": "8"}]
    groups, world = VerdictGroups(), FakeApi(a_tenant(quotas=rows, onExceed="Demote"))
    world.webhooks = structs.replace(world.webhooks, record=Recorder(Metrics(), show=groups.add))
    train = a_job(a_pod().asking("2").of_tier("gpu-training"), name="train", parallelism=1).of_tier("gpu-training")
    await world.create(a_pod().asking("2").of_tier("gpu-training"))
    assert "runs as" not in next(iter(groups)).last.why

    await world.create(train)
    last = next(iter(groups)).last
    assert (last.outcome, last.tier) == ("admitted", "gpu-training")
    assert "pods that have no room there run as gpu-batch" in last.why


async def test_what_has_no_room_in_a_queue_is_queued() -> None:
    groups, world = VerdictGroups(), FakeApi(a_tenant(onExceed="Hold").allowing("2"))
    world.webhooks = structs.replace(world.webhooks, record=Recorder(Metrics(), show=groups.add))
    await world.create(a_pod().asking(2).having("spec.nodeName", "gpu-7"))
    await world.create(a_job(a_pod().asking(2), name="second"))
    assert [(each.last.kind, each.last.outcome) for each in groups] == [("Job", "queued"), ("Pod", "admitted")]


async def test_the_pods_of_a_deployment_and_itself_are_of_one_workload() -> None:
    """Its ReplicaSets come and go; a person knows the Deployment."""
    chat = a_deployment(a_pod().asking(), name="chat")
    revision = a_replicaset(a_pod().asking(), name="chat-5d9").owned_by(chat)
    groups, world = VerdictGroups(), FakeApi(chat, revision)
    world.webhooks = structs.replace(world.webhooks, record=Recorder(Metrics(), show=groups.add))
    await world.create(chat)
    await world.create(a_pod().asking().owned_by(revision))
    assert {each.last.workload for each in groups} == {"Deployment/chat"}
