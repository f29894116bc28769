"""With `tierAccess: RBAC`, whoever names a tier has the right to use it. Controllers' pods are never refused for it.

Ada may use gpu-serving, Mallory no tier. Both may create and change everything in the namespace.
"""

import re
from collections.abc import Mapping
from typing import Any

import pytest

from tests.builders import (
    Built,
    Tree,
    a_deployment,
    a_job,
    a_namespace,
    a_pod,
    a_podgroup,
    a_policy,
    a_pytorchjob,
    a_replicaset,
    a_tenant,
    a_workload,
)
from tests.builders.world import Answer, FakeApi
from tests.workloads.golden.files import FOLDER, present
from webhook.cli.manifests.documents import Document, documents
from webhook.cli.manifests.judge import judge_at
from webhook.cluster.offline import offline_cluster
from webhook.objects.refusal import Unreadable
from webhook.objects.user import User
from webhook.policy.values.tier_policy import TierPolicy

SERVING = "gpu-serving"
ADA: Any = {"userInfo": {"username": "ada", "groups": ["llm-team", "system:authenticated"]}}
MALLORY: Any = {"userInfo": {"username": "mallory", "groups": ["system:authenticated"]}}
REPLICASETS: Any = {"userInfo": {"username": "system:serviceaccount:kube-system:replicaset-controller"}}
JOBS: Any = {"userInfo": {"username": "system:serviceaccount:kube-system:job-controller"}}
OPERATOR: Any = {"userInfo": {"username": "system:serviceaccount:operators:operator"}}
BOT: Any = {"userInfo": {"username": "system:serviceaccount:team-alpha:bot"}}

GROUP = a_podgroup().of_class(SERVING).having("spec.priority", 800)
DEPLOYMENT = a_deployment(a_pod().asking().of_tier(SERVING), name="chat")
REPLICAS = a_replicaset(a_pod().asking().of_tier(SERVING), name="chat-5d9").owned_by(DEPLOYMENT)


class World(FakeApi):
    """A cluster in which RBAC gives Ada one tier. `asked` are the questions about it."""

    def __init__(self, *objects: Built, policy: TierPolicy | None = None) -> None:
        super().__init__(*objects, policy=policy or a_policy(tierAccess="RBAC"))
        self.asked: list[tuple[str, str, str]] = []
        self.down = False
        self.cluster.lookups.may_use = self._may_use  # type: ignore[method-assign]

    async def _may_use(self, user: User, tier: str, namespace: str) -> bool:
        self.asked.append((user.username, tier, namespace))
        if self.down:
            raise Unreadable(f"the rights of {user.username}: no answer from the API server within 2 s")
        return (user.username, tier, namespace) == ("ada", SERVING, "team-alpha")


def refused_by_name(answer: Answer) -> bool:
    message = answer.response.get("status", {}).get("message", "")
    return not answer.allowed and message.endswith("[tier-not-for-user]")


def labelled(obj: Built, tier: str = SERVING) -> Built:
    return obj.having("metadata.labels", {"gpu-tiers.dev/tier": tier})


CRONJOB = a_workload("batch/v1", "CronJob", "nightly", jobTemplate={"spec": a_job().json()["spec"]})

WAYS: Mapping[str, Built] = {
    "a label on a pod": a_pod().asking().of_tier(SERVING),
    "a class on a pod": a_pod().asking().of_class(SERVING),
    "the class that evicts nobody": a_pod().asking().of_class(f"{SERVING}-nonpreempting"),
    "a pod in somebody's group": a_pod().asking().in_group("gang"),
    "somebody's workload as the owner of a pod": a_pod().asking().of_tier(SERVING).owned_by(REPLICAS),
    "the same, and its owner names the tier": a_pod().asking().owned_by(labelled(a_job(name="labelled"))),
    "the annotations of an admitted pod": a_pod()
    .asking()
    .of_class(SERVING)
    .annotated({"gpu-tiers.dev/assigned-by": "label: the label on the pod says gpu-serving"}),
    "a label in a template": DEPLOYMENT,
    "a class in a template": a_job(a_pod().asking().of_class(SERVING)),
    "a label on a workload": labelled(a_job()),
    "a label on one template of a gang": a_pytorchjob(a_pod().asking().of_tier(SERVING)),
    "a label on a kind without templates": labelled(a_workload("apps.nvidia.com/v1alpha1", "NIMService")),
    "the class of a Volcano Job": a_workload(
        "batch.volcano.sh/v1alpha1",
        "Job",
        priorityClassName=SERVING,
        tasks=[{"name": "worker", "replicas": 1, "template": a_pod().asking().template()}],
    ),
    "a Job of somebody's CronJob": a_job(a_pod().asking().of_tier(SERVING), name="now").owned_by(CRONJOB),
    "a workload with somebody's as its owner": a_deployment(name="mine").owned_by(labelled(a_job(name="labelled"))),
    "a PodGroup": a_podgroup("own").of_class(SERVING),
}
THERE = (GROUP, DEPLOYMENT, REPLICAS, labelled(a_job(name="labelled")), CRONJOB)


@pytest.mark.parametrize("way", WAYS)
async def test_who_may_not_use_a_tier_gets_it_in_no_way(way: str) -> None:
    world = World(*THERE)
    answer = await world.create(WAYS[way], **MALLORY)
    assert refused_by_name(answer), answer.response
    assert ("mallory", SERVING, "team-alpha") in world.asked


@pytest.mark.parametrize("way", WAYS)
async def test_who_may_use_it_gets_it_in_all_of_them(way: str) -> None:
    assert (await World(*THERE).create(WAYS[way], **ADA)).allowed


@pytest.mark.parametrize("way", WAYS)
async def test_without_tier_access_nobody_is_asked_about(way: str) -> None:
    world = World(*THERE, policy=a_policy())
    assert (await world.create(WAYS[way], **MALLORY)).allowed
    assert world.asked == []


async def test_the_refusal_says_what_is_missing_and_what_one_may_name() -> None:
    world = World()
    assert (await world.create(a_pod().asking().of_tier("gpu-training"), **ADA)).sentence == (
        "user ada may not use gpu-training: that takes the verb use on PriorityClass gpu-training (tierAccess: RBAC). "
        "Tiers that you may name: gpu-serving; for gpu-training ask your platform team for the ClusterRole whose name "
        "ends with -use-gpu-training"
    )
    assert (
        "Leave the tier out, and gpu-tiers chooses one for your workload; for"
        in (await world.create(a_pod().asking().of_tier(SERVING), **MALLORY)).sentence
    )


async def test_nobody_is_told_to_leave_the_tier_out_where_one_is_required() -> None:
    world = World(policy=a_policy(tierAccess="RBAC", untiered="Refuse"))
    told = (await world.create(a_pod().asking().of_tier(SERVING), **MALLORY)).sentence
    assert "Ask your platform team for the right to use a tier: the policy requires that you name one" in told


async def test_only_tiers_of_the_tenant_are_offered() -> None:
    world = World(a_tenant(maxTier="gpu-batch"))
    answer = await world.create(a_pod().asking().of_tier("gpu-batch"), **ADA)
    assert refused_by_name(answer)
    assert SERVING not in answer.sentence


@pytest.mark.parametrize("way", ["the pod", "its workload", "in the template"])
async def test_only_tiers_that_its_type_may_have_are_offered(way: str) -> None:
    """Ada may use gpu-serving, which is not for training; its label would be refused next."""
    by_type = {"training": ["gpu-training", "gpu-batch"]}
    world = World(policy=a_policy(tierAccess="RBAC", allowedTiersByType=by_type))
    trains = a_pod().asking().running("python", "train.py")
    obj = {
        "the pod": trains.of_tier("gpu-batch"),
        "its workload": labelled(a_job(trains), "gpu-batch"),
        "in the template": a_job(trains.of_tier("gpu-batch")),
    }[way]
    answer = await world.create(obj, **ADA)
    assert refused_by_name(answer), answer.response
    assert "Leave the tier out, and gpu-tiers chooses one for your workload" in answer.sentence


@pytest.mark.parametrize("access", ["RBAC", "Anyone"])
async def test_a_refusal_for_want_of_room_offers_tiers_to_those_who_may_name_them(access: str) -> None:
    rows = a_tenant().allowing(1, tier=SERVING).allowing(4, tier="gpu-batch")
    world = World(rows, policy=a_policy(tierAccess=access))
    said = (await world.create(a_pod().asking(2).of_tier(SERVING), **ADA)).sentence
    assert ("Would fit if you may name it: gpu-" in said) is (access == "RBAC")


BY_ITSELF = {
    "the policy's default": ((), a_pod().asking()),
    "what it is": ((), a_pytorchjob(a_pod().asking())),
    "a rule": ((), a_pod("ruled").asking().labelled({"app": "chat"})),
    "a class that a rule overrides": ((), a_pod("ruled").asking().of_class("gpu-batch").labelled({"app": "chat"})),
    "the tenant's default": ((a_tenant().having("spec.defaultTier", SERVING),), a_pod().asking()),
    "the namespace's default": (
        (a_namespace().labelled({"gpu-tiers.dev/default-tier": SERVING}),),
        a_pod().asking(),
    ),
    "a group of the tier that the pod has anyway": (
        (a_podgroup().of_class("gpu-interactive").having("spec.priority", 200),),
        a_pod().asking().in_group("gang"),
    ),
}


@pytest.mark.parametrize("tier", BY_ITSELF)
async def test_nobody_is_asked_about_for_a_tier_that_nobody_named(tier: str) -> None:
    objects, obj = BY_ITSELF[tier]
    rules = [{"match": {"labels": {"app": "chat"}}, "tier": SERVING}]
    world = World(*objects, policy=a_policy(tierAccess="RBAC", rules=rules))
    assert (await world.create(obj, **MALLORY)).allowed
    assert world.asked == []


async def test_a_label_on_a_workload_without_gpus_names_nothing_yet() -> None:
    """The API server sends such a workload only when it asks for GPUs, and then its label counts."""
    without = labelled(a_deployment(a_pod().running()))
    world = World()
    assert (await world.create(without, **MALLORY)).allowed
    answer = await world.update(without, labelled(a_deployment(a_pod().asking())), **MALLORY)
    assert refused_by_name(answer)


UPDATES: Mapping[str, tuple[Built, Built]] = {
    "another label": (a_deployment(), labelled(a_deployment())),
    "another label in the template": (a_deployment(), a_deployment(a_pod().asking().of_tier(SERVING))),
    "another tier instead of its own": (
        labelled(a_deployment(), "gpu-batch"),
        labelled(a_deployment()),
    ),
    "the template of a ReplicaSet": (
        a_replicaset().owned_by(DEPLOYMENT.named("mine")),
        a_replicaset(a_pod().asking().of_tier(SERVING)).owned_by(DEPLOYMENT.named("mine")),
    ),
    "an owner that names it": (a_job(), a_job().owned_by(labelled(a_job(name="labelled")))),
    "a tier beside a mistake that was there before": (
        a_pytorchjob(a_pod().asking().of_class("gpu-batch")).having("spec.pytorchReplicaSpecs.Master.replicas", "x"),
        labelled(a_pytorchjob(a_pod().asking())),
    ),
}


@pytest.mark.parametrize("change", UPDATES)
async def test_an_update_that_names_a_tier_is_asked_about(change: str) -> None:
    old, new = UPDATES[change]
    world = World(*THERE, a_deployment(name="mine").having("metadata.uid", DEPLOYMENT.json()["metadata"]["uid"]))
    assert refused_by_name(await world.update(old, new, **MALLORY))
    assert (await world.update(old, new, **ADA)).allowed


async def test_a_mistake_that_stays_hides_no_new_tier() -> None:
    """A template above the ceiling was there before, so the update is taken but for the tier of the other template."""
    master = {"replicas": 1, "template": a_pod().asking().of_tier("gpu-training").template()}
    old = a_pytorchjob().having("spec.pytorchReplicaSpecs.Master", master)
    spare = a_pytorchjob(a_pod().asking().of_tier(SERVING)).having("spec.pytorchReplicaSpecs.Master", master)
    world = World(a_tenant(maxTier=SERVING))
    assert (await world.update(old, old.labelled({"team": "x"}), **MALLORY)).allowed
    assert refused_by_name(await world.update(old, spare, **MALLORY))


async def test_what_is_updated_without_another_tier_is_asked_about_never_again() -> None:
    """So a controller that reconciles, and a person who scales, needs no right; nor what is older than tierAccess."""
    world = World()
    scaled = DEPLOYMENT.having("spec.replicas", 2)
    for user in (MALLORY, OPERATOR, REPLICASETS):
        assert (await world.update(DEPLOYMENT, scaled, **user)).allowed
    assert world.asked == []


CHAINS: Mapping[str, tuple[tuple[Built, ...], Built, Any]] = {
    "a Deployment's ReplicaSet": ((DEPLOYMENT,), REPLICAS, OPERATOR),
    "its pod": ((DEPLOYMENT, REPLICAS), a_pod().asking().of_tier(SERVING).owned_by(REPLICAS), REPLICASETS),
    "a pod of a class in the template": (
        (a_job(a_pod().asking().of_class(SERVING)),),
        a_pod().asking().of_class(SERVING).owned_by(a_job()),
        JOBS,
    ),
    "a pod of a labelled Job": ((labelled(a_job()),), a_pod().asking().owned_by(a_job()), JOBS),
    "a CronJob's Job": (
        (labelled(CRONJOB),),
        a_job(name="nightly-1").owned_by(CRONJOB),
        OPERATOR,
    ),
    "a pod of a CronJob's Job": (
        (labelled(CRONJOB), a_job(name="nightly-1").owned_by(CRONJOB)),
        a_pod().asking().owned_by(a_job(name="nightly-1")),
        JOBS,
    ),
    "a worker of a gang whose other template names the tier": (
        (
            a_pytorchjob().having(
                "spec.pytorchReplicaSpecs.Master",
                {"replicas": 1, "template": a_pod().asking().of_tier(SERVING).template()},
            ),
        ),
        a_pod().asking().owned_by(a_pytorchjob()),
        OPERATOR,
    ),
    "a pod in the group that its Job's controller made": (
        (labelled(a_job()), GROUP),
        a_pod().asking().owned_by(a_job()).in_group("gang"),
        JOBS,
    ),
    "a PodGroup of a Job's controller": ((labelled(a_job()),), a_podgroup("made").owned_by(a_job()), JOBS),
    "a pod that a group's demotion lowered": (
        (
            labelled(a_job()),
            a_podgroup()
            .of_class("gpu-batch")
            .having("spec.priority", 400)
            .annotated({"gpu-tiers.dev/assigned-by": "label: x; demoted from gpu-serving to gpu-batch"}),
        ),
        a_pod().asking().of_tier(SERVING).owned_by(a_job()).in_group("gang"),
        JOBS,
    ),
}


@pytest.mark.parametrize("made", CHAINS)
async def test_what_a_controller_makes_passes_by_its_workload(made: str) -> None:
    objects, obj, controller = CHAINS[made]
    world = World(*objects)
    answer = await world.create(obj, **controller)
    assert answer.allowed, answer.sentence
    assert world.asked == []


KINDS = [each for each in present() if each.startswith("kinds/")]


@pytest.mark.parametrize("kind", KINDS)
async def test_the_pods_of_every_kind_pass_by_the_label_of_their_workload(kind: str) -> None:
    policy, (document, *others) = a_policy(tierAccess="RBAC"), documents(str(FOLDER / kind))
    workload = labelled(Built(document.tree))
    objects = [workload, *(Built(each.tree) for each in others)]
    judge = judge_at(offline_cluster(policy.tiers, [each.json() for each in objects]), policy)
    found = await judge.finding(Document("the test", workload.json()))
    world = World(*objects, policy=policy)
    for each in found.pods:
        answer = await world.validate(world.stored(each.after), **OPERATOR)
        assert not refused_by_name(answer), answer.sentence
    assert world.asked == []


async def test_a_controllers_pods_pass_while_the_api_server_answers_no_questions() -> None:
    world = World(DEPLOYMENT, REPLICAS)
    world.down = True
    pod = a_pod().asking().of_tier(SERVING).owned_by(REPLICAS)
    assert (await world.create(pod, **REPLICASETS)).allowed
    assert (await world.create(a_pod().asking().of_tier(SERVING), **ADA)).sentence == (
        "the rights of ada: no answer from the API server within 2 s, so gpu-tiers can't find out who may use a tier"
    )


async def test_a_service_account_with_an_owner_of_another_tier_is_asked_about() -> None:
    """Who may create pods may write any owner of his namespace into them, and act as its service accounts."""
    world = World(a_job(), a_replicaset())
    for forged in (
        a_pod().asking().of_tier(SERVING).owned_by(a_job()),
        a_deployment(a_pod().asking().of_tier(SERVING), name="hidden").owned_by(a_job()),
    ):
        answer = await world.create(forged, **BOT)
        assert refused_by_name(answer)
        assert answer.sentence.startswith("user system:serviceaccount:team-alpha:bot may not use gpu-serving")


async def test_the_account_of_a_controller_of_an_unknown_kind_is_asked_about() -> None:
    stranger = a_workload("example.com/v1", "Thing")
    for made in (
        a_pod().asking().of_tier(SERVING).owned_by(stranger),
        a_deployment(a_pod().asking().of_tier(SERVING)).owned_by(stranger),
    ):
        assert refused_by_name(await World().create(made, **OPERATOR))


async def test_a_workload_whose_owner_can_not_be_read_is_not_let_in_unasked() -> None:
    answer = await World().create(a_deployment(a_pod().asking().of_tier(SERVING)).owned_by(a_job()), **OPERATOR)
    assert answer.sentence == "Job/work is not among the objects given, so gpu-tiers can't choose a tier"


async def test_what_a_controller_makes_is_judged_for_nothing_else() -> None:
    """Its workload was, and a refusal of the ReplicaSet would hide the pods' own."""
    tenant, large = a_tenant().allowing("2"), a_pod().asking(4)
    one = a_replicaset(large).owned_by(a_deployment(large))
    assert (await World(tenant, a_deployment(large)).create(one, **OPERATOR)).allowed
    job = a_job(large, name="nightly-1").owned_by(CRONJOB)
    answer = await World(tenant, CRONJOB).create(job, **OPERATOR)
    assert "asks for 4" in answer.sentence, "a gang by itself is booked"


@pytest.mark.parametrize("mode", ["Audit", "Warn"])
async def test_the_milder_modes_refuse_nobody(mode: str) -> None:
    world = World(policy=a_policy(tierAccess="RBAC", mode=mode))
    obj: Tree = world.stored((await world.mutate(a_pod().asking().of_tier(SERVING), **MALLORY)).patched)
    answer = await world.validate(obj, **MALLORY)
    assert answer.allowed
    assert "user mallory may not use gpu-serving" in answer.audit["would-refuse"]
    assert any("user mallory may not use" in each for each in answer.warnings) is (mode == "Warn")


async def test_a_dry_run_is_refused_too() -> None:
    assert refused_by_name(await World().create(a_pod().asking().of_tier(SERVING), dryRun=True, **MALLORY))


async def test_a_demoted_pod_needs_the_right_to_the_tier_that_it_named() -> None:
    tenant = a_tenant().allowing("0", tier=SERVING).allowing("8", tier="gpu-batch").having("spec.onExceed", "Demote")
    answer = await World(tenant).create(a_pod().asking().of_tier(SERVING), **MALLORY)
    assert re.match("user mallory may not use gpu-serving", answer.sentence)
    assert (await World(tenant).create(a_pod().asking().of_tier(SERVING), **ADA)).allowed
