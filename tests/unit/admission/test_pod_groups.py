"""PodGroups and Kubernetes' own Workloads: a gang that trains goes as a whole, and all of it has one tier."""

import json

import pytest
from msgspec.structs import replace

from tests.builders import (
    Built,
    TenantBuilder,
    Tree,
    a_composite_podgroup,
    a_deployment,
    a_job,
    a_pod,
    a_podgroup,
    a_policy,
    a_pytorchjob,
    a_scheduling_workload,
    a_tenant,
    some_facts,
)
from tests.builders.words import deciding_line
from tests.builders.world import FakeApi
from webhook.cluster.views import group_of
from webhook.objects.podgroups import PodGroup
from webhook.objects.view import view
from webhook.policy.decide import decide_pod
from webhook.policy.values.tiers import PriorityClass
from webhook.policy.workloads.templates import TEMPLATE_CLASS

OLDER, NEWER = "scheduling.k8s.io/v1alpha2", "scheduling.k8s.io/v1beta1"
WHOLE = {OLDER: "PodGroup", NEWER: {"all": {}}, "scheduling.k8s.io/v1alpha3": {"all": {}}}
SINGLE: dict[str, object] = {OLDER: "Pod", NEWER: {"single": {}}}
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
RUNS = ("torchrun", "--nnodes=4", "train.py")


def mode_of(patched: Tree) -> object:
    return patched["spec"]["disruptionMode"]


def a_training_job(name: str = "work", **spec: object) -> Built:
    return a_job(a_pod().asking(command=list(RUNS)), name, **spec)


@pytest.mark.parametrize("version", WHOLE)
async def test_a_gang_of_the_tier_for_training_goes_whole(version: str) -> None:
    answer = await FakeApi().mutate(a_podgroup(api_version=version).of_tier("gpu-training"))
    assert mode_of(answer.patched) == WHOLE[version]


async def test_a_gang_that_trains_goes_whole_in_any_tier() -> None:
    job = a_pytorchjob().of_tier("gpu-batch")
    patched = (await FakeApi(job).mutate(a_podgroup().owned_by(job))).patched
    assert patched["spec"]["priorityClassName"] == "gpu-batch"
    assert mode_of(patched) == {"all": {}}


async def test_a_gang_that_serves_goes_pod_by_pod() -> None:
    patched = (await FakeApi().mutate(a_podgroup().of_tier("gpu-serving"))).patched
    assert mode_of(patched) == {"single": {}}


async def test_training_pods_that_need_not_start_together_go_pod_by_pod() -> None:
    """The Job controller gives every Job a group whose policy is basic."""
    group = a_podgroup().of_tier("gpu-training").json()
    group["spec"]["schedulingPolicy"] = {"basic": {}}
    assert mode_of((await FakeApi().mutate(Built(group))).patched) == {"single": {}}


@pytest.mark.parametrize("version", SINGLE)
async def test_what_kubectl_apply_says_stays_with_a_warning(version: str) -> None:
    group = a_podgroup(api_version=version).of_tier("gpu-training").having("spec.disruptionMode", SINGLE[version])
    applied = group.annotated({LAST_APPLIED: json.dumps(group.json())})
    assert mode_of((await FakeApi().mutate(applied)).patched) == SINGLE[version]
    answer = await FakeApi().create(applied)
    assert answer.allowed
    (warning,) = answer.warnings
    assert warning.startswith("[gang-in-parts]")


async def test_what_server_side_apply_says_stays() -> None:
    managed = {"operation": "Apply", "manager": "argocd", "fieldsV1": {"f:spec": {"f:disruptionMode": {}}}}
    group = a_podgroup().of_tier("gpu-training").having("metadata.managedFields", [managed])
    assert mode_of((await FakeApi().mutate(group)).patched) == {"single": {}}


@pytest.mark.parametrize("nonsense", ["{", "[]", '{"spec": 3}', "[" * 40_000])
async def test_a_broken_last_applied_says_nothing(nonsense: str) -> None:
    group = a_podgroup().of_tier("gpu-training").annotated({LAST_APPLIED: nonsense})
    assert mode_of((await FakeApi().mutate(group)).patched) == {"all": {}}


async def test_what_the_template_says_stays() -> None:
    """A controller copies it from its Workload, and so does the Job controller what a Job says of scheduling."""
    workload = a_scheduling_workload("llm", workers="gpu-training")
    workload = workload.having("spec.podGroupTemplates.0.disruptionMode", {"single": {}})
    group = a_podgroup().of_class("gpu-training").having("spec.workloadRef", ref("llm", "workers"))
    assert mode_of((await FakeApi(workload).mutate(group)).patched) == {"single": {}}
    assert mode_of((await FakeApi().mutate(group)).patched) == {"all": {}}, "nobody checks that the Workload exists"


def ref(workload: str, template: str) -> Tree:
    return {"workloadName": workload, "templateName": template}


async def test_on_1_36_a_pod_outside_any_group_breaks_a_gang() -> None:
    answer = await FakeApi().create(a_podgroup(api_version=OLDER).of_tier("gpu-training"))
    (warning,) = answer.warnings
    assert warning.startswith("[gang-broken-by-pods] Kubernetes 1.36")
    assert (await FakeApi().create(a_podgroup().of_tier("gpu-training"))).warnings == []


async def test_where_groups_have_no_priority_the_label_tells_their_pods() -> None:
    """1.36 without the gate WorkloadAwarePreemption drops class, priority and disruptionMode."""
    world = FakeApi()
    stored = world.stored(a_podgroup(api_version=OLDER).of_tier("gpu-training"))
    del stored["spec"]["priority"]
    answer = await world.validate(stored)
    assert answer.allowed
    assert "keeps no class on a PodGroup" in answer.warnings[0]

    for group, line in (
        (view(stored, PodGroup), "group: PodGroup/gang is gpu-training"),
        (PodGroup(), "policy-default: the policy's default"),
    ):
        known = replace(some_facts(), group=group_of(group, "gang", prioritized=False))
        decision = decide_pod(a_pod().asking().in_group("gang").view(), known, a_policy())
        assert decision
        assert deciding_line(decision.assignment) == line


async def test_in_files_a_groups_label_tells_its_pods() -> None:
    """`gpu-tiers review` sees a group as it is written, before its class was."""
    world = FakeApi(a_podgroup().of_tier("gpu-batch"))
    assert (await world.mutate(a_pod().asking().in_group("gang"))).patched["spec"]["priority"] == 400


async def test_a_preemption_policy_that_a_gate_fills_in_goes_with_the_class() -> None:
    """PodGroupPreemptionPolicy (alpha in 1.37): Priority refuses any mix, as on pods."""
    group = a_podgroup().of_tier("gpu-interactive")
    patched = (await FakeApi().mutate(group.having("spec.preemptionPolicy", "PreemptLowerPriority"))).patched
    assert patched["spec"]["preemptionPolicy"] == "Never"
    assert "preemptionPolicy" not in (await FakeApi().mutate(group)).patched["spec"]


# One tier for the group and its pods


async def test_a_group_has_the_tier_that_its_owners_pods_have() -> None:
    job = a_training_job()
    world = FakeApi(job)
    pod = a_pod().asking(command=list(RUNS)).owned_by(job)
    trace = (await world.validate(job)).audit["assigned-by"]
    for each in (pod, a_podgroup().owned_by(job)):
        patched = (await world.mutate(each)).patched
        assert patched["metadata"]["annotations"]["gpu-tiers.dev/assigned-by"] == trace
        assert patched["spec"]["priorityClassName"] == "gpu-training"
    assert (await world.create(a_podgroup().owned_by(job))).allowed


CONTRADICTIONS = {
    "a label against its owner's": (
        a_pytorchjob().of_tier("gpu-batch"),
        a_podgroup().of_tier("gpu-training"),
        "metadata.labels[gpu-tiers.dev/tier]: gpu-training, but the pods of its owner PyTorchJob/work are gpu-batch",
    ),
    "a class against its owner's kind": (
        a_pytorchjob(),
        a_podgroup().of_class("gpu-batch"),
        "spec.priorityClassName: gpu-batch, but the pods of its owner PyTorchJob/work are gpu-training",
    ),
    "a label against a class that is kept": (
        a_job(a_pod().asking().of_class("house-high")),
        a_podgroup().of_tier("gpu-training"),
        "metadata.labels[gpu-tiers.dev/tier]: gpu-training, but the pods of its owner Job/work are without a tier",
    ),
}


@pytest.mark.parametrize("which", CONTRADICTIONS)
async def test_a_group_against_its_owner_is_refused_with_both_names(which: str) -> None:
    owner, group, names = CONTRADICTIONS[which]
    sentence = (await FakeApi(owner).create(group.owned_by(owner))).sentence
    assert sentence.startswith(f"{names} (")
    assert sentence.endswith("); a group and its pods share one tier: write the pods' tier, or leave the field out")


async def test_a_groups_label_against_its_class() -> None:
    answer = await FakeApi().create(a_podgroup().of_tier("gpu-training").of_class("gpu-batch"))
    assert answer.sentence == (
        "metadata.labels[gpu-tiers.dev/tier]: gpu-training contradicts spec.priorityClassName: gpu-batch; write one of "
        "the two, or the same in both"
    )


async def test_a_group_against_its_template() -> None:
    workload = a_scheduling_workload("llm", workers="gpu-training")
    group = a_podgroup().of_tier("gpu-batch").having("spec.workloadRef", ref("llm", "workers"))
    assert (await FakeApi(workload).create(group)).sentence == (
        "metadata.labels[gpu-tiers.dev/tier]: gpu-batch, but the template workers in its Workload has "
        "priorityClassName gpu-training; a PodGroup has the class of its template: write the same tier, or "
        "leave the field out"
    )


@pytest.mark.parametrize(
    ("version", "where", "reference"),
    [
        (NEWER, "spec.workloadRef", ref("llm", "workers")),
        (OLDER, "spec.podGroupTemplateRef", {"workload": {"workloadName": "llm", "podGroupTemplateName": "workers"}}),
    ],
)
async def test_a_group_without_a_class_has_its_templates(version: str, where: str, reference: Tree) -> None:
    world = FakeApi(a_scheduling_workload("llm", workers="gpu-training"))
    group = a_podgroup(api_version=version).having(where, reference)
    patched = (await world.mutate(group)).patched
    assert (patched["spec"]["priorityClassName"], mode_of(patched)) == ("gpu-training", WHOLE[version])
    assert (await world.create(group)).allowed


async def test_the_default_class_of_the_cluster_is_nobodys_choice() -> None:
    """The API server writes its name on every PodGroup that names none."""
    world = FakeApi(a_scheduling_workload("llm", workers="gpu-training"))
    world.known.live["house"] = PriorityClass("house", 300, global_default=True)
    group = a_podgroup().of_class("house").having("spec.workloadRef", ref("llm", "workers"))
    assert (await world.mutate(group)).patched["spec"]["priorityClassName"] == "gpu-training"


async def test_a_class_that_we_wrote_into_the_owners_template_is_nobodys_choice() -> None:
    """With `templates: Mutate` the Job controller copies it to the group; the policy may have changed since."""
    template = a_pod().asking(command=list(RUNS)).of_class("gpu-training").annotated({TEMPLATE_CLASS: "gpu-training"})
    job = a_job(template)
    policy = a_policy(workloadTypes={"training": "gpu-batch"})
    patched = (await FakeApi(job, policy=policy).mutate(a_podgroup().of_class("gpu-training").owned_by(job))).patched
    assert patched["spec"]["priorityClassName"] == "gpu-batch"


async def test_a_class_that_stays_is_shared_by_group_and_pods() -> None:
    """The Job controller copies the class of the Job's template to the group."""
    job = a_job(a_pod().asking().of_class("house-high"))
    group = a_podgroup().of_class("house-high").owned_by(job)
    world = FakeApi(job, group)
    world.known.live["house-high"] = PriorityClass("house-high", 500)
    assert (await world.mutate(group)).patch == []
    pod = a_pod().asking().of_class("house-high").in_group("gang").owned_by(job)
    answer = await world.create(pod)
    assert answer.allowed
    assert answer.warnings == ["priorityClassName house-high is not a tier's class and is kept; this pod gets no tier"]


@pytest.mark.parametrize(
    ("policy", "tier"),
    [
        ({"rules": [{"match": {"kinds": [{"group": "batch", "kind": "Job"}]}, "tier": "gpu-batch"}]}, "gpu-batch"),
        ({"unmanagedClasses": "Replace"}, "gpu-training"),
    ],
    ids=["by a rule", "outside the tiers"],
)
async def test_a_class_that_is_replaced_is_replaced_on_group_and_pods(policy: Tree, tier: str) -> None:
    written = "gpu-serving" if "rules" in policy else "house-high"
    job = a_job(a_pod().asking(command=list(RUNS)).of_class(written))
    world = FakeApi(job, policy=a_policy(**policy))
    group = a_podgroup().of_class(written).owned_by(job)
    assert (await world.mutate(group)).patched["spec"]["priorityClassName"] == tier
    world = FakeApi(job, a_podgroup().of_class(tier), policy=a_policy(**policy))
    pod = a_pod().asking(command=list(RUNS)).of_class(written).in_group("gang").owned_by(job)
    assert (await world.mutate(pod)).patched["spec"]["priorityClassName"] == tier


@pytest.mark.parametrize("workers", [1, 2], ids=["one pod, which is no gang", "a gang"])
@pytest.mark.parametrize("written", ["", "gpu-training"], ids=["by its kind", "by a label"])
async def test_a_demoted_workloads_group_and_pods_are_demoted_alike(written: str, workers: int) -> None:
    """A gang was demoted when its workload was applied; the label on its template says what was asked for."""
    pod = a_pod().asking().of_tier(written) if written else a_pod().asking()
    job, tenant = a_pytorchjob(pod, workers=workers), over_quota(workers)
    group = a_podgroup().owned_by(job)
    world = FakeApi(job, tenant)
    assert (await world.validate(job)).allowed
    patched = (await world.mutate(group)).patched
    tier = patched["spec"]["priorityClassName"]
    assert (tier, mode_of(patched)) == ("gpu-batch", {"all": {}})
    assert patched["metadata"]["annotations"]["gpu-tiers.dev/assigned-by"].endswith(
        "; demoted from gpu-training to gpu-batch"
    )
    assert (await world.create(group)).allowed

    world = FakeApi(job, tenant, Built(patched))
    assert (await world.validate(job)).allowed
    member = pod.in_group("gang").owned_by(job)
    assert (await world.mutate(member)).patched["spec"]["priorityClassName"] == tier
    assert (await world.create(member)).allowed


async def test_a_demoted_group_without_a_class_tells_its_tier_by_our_mark() -> None:
    """1.36 keeps no class on it without the gate WorkloadAwarePreemption, and its author's label stays."""
    job, tenant = a_pytorchjob(workers=2), over_quota(2)
    world = FakeApi(job, tenant)
    assert (await world.validate(job)).allowed
    group = a_podgroup(api_version="scheduling.k8s.io/v1alpha2").owned_by(job).of_tier("gpu-training").json()
    patched = (await world.mutate(group)).patched
    assert patched["metadata"]["labels"]["gpu-tiers.dev/tier"] == "gpu-training"
    for dropped in ("priorityClassName", "priority"):
        del patched["spec"][dropped]
    assert (await world.validate(world.stored(patched))).allowed

    world = FakeApi(job, tenant, Built(patched))
    assert (await world.validate(job)).allowed
    member = a_pod().asking().in_group("gang").owned_by(job)
    assert (await world.mutate(member)).patched["spec"]["priorityClassName"] == "gpu-batch"
    assert (await world.create(member)).allowed


def over_quota(workers: int) -> TenantBuilder:
    return a_tenant(onExceed="Demote").allowing(str(workers - 1), tier="gpu-training")


async def test_a_forged_demotion_changes_nothing() -> None:
    job = a_pytorchjob()
    line = "workload-type: training, by its kind, PyTorchJob/work; demoted from gpu-training to gpu-batch"
    forged = a_podgroup().owned_by(job).of_tier("gpu-batch").of_class("gpu-batch")
    answer = await FakeApi(job).create(forged.annotated({"gpu-tiers.dev/assigned-by": line}))
    assert "but the pods of its owner PyTorchJob/work are gpu-training" in answer.sentence


@pytest.mark.parametrize("higher", ["gpu-training", "gpu-interactive", "mine"])
async def test_a_mark_that_was_forged_later_lets_no_pod_bear_another_tiers_label(higher: str) -> None:
    """Nobody reviews an update of a PodGroup. The tenant may not use gpu-training, and gpu-interactive is no higher."""
    line = f"policy-default: the policy's default; demoted from {higher} to gpu-batch"
    group = a_podgroup().of_class("gpu-batch").annotated({"gpu-tiers.dev/assigned-by": line})
    world = FakeApi(a_tenant(maxTier="gpu-batch"), group)
    answer = await world.validate(a_pod().asking().in_group("gang").of_tier(higher))
    assert f"{higher}, but its PodGroup/gang is gpu-batch" in answer.sentence


# Kubernetes' own Workloads


async def test_the_templates_of_a_workload_get_its_tier() -> None:
    workload = a_scheduling_workload("llm", driver="", workers="").of_tier("gpu-training")
    answer = await FakeApi().mutate(workload)
    assert classes(answer.patched) == ["gpu-training", "gpu-training"]
    assert "priority" not in answer.patched["spec"]["podGroupTemplates"][0], "the PodGroup's is written when it is made"
    assert (await FakeApi().create(workload)).allowed


async def test_a_template_without_a_class_gets_the_others() -> None:
    answer = await FakeApi().mutate(a_scheduling_workload("llm", driver="", workers="gpu-batch"))
    assert classes(answer.patched) == ["gpu-batch", "gpu-batch"]


def classes(workload: Tree) -> list[str]:
    return [each["priorityClassName"] for each in workload["spec"]["podGroupTemplates"]]


@pytest.mark.parametrize("ask", ["mutate", "validate"])
async def test_templates_of_two_tiers_are_refused_with_both_names(ask: str) -> None:
    """The mutating webhook refuses them, because 1.37 refuses them before the other one, without both names."""
    workload = a_scheduling_workload("llm", driver="gpu-batch", workers="gpu-training")
    assert (await getattr(FakeApi(), ask)(workload)).sentence == (
        "spec.podGroupTemplates[1]: driver has priorityClassName gpu-batch, and workers has gpu-training; the "
        "templates of a Workload share one tier"
    )


async def test_during_adoption_the_templates_preempt_nobody() -> None:
    world = FakeApi(policy=a_policy(adoption=True))
    patched = (await world.mutate(a_scheduling_workload("llm", driver="gpu-training", workers=""))).patched
    assert classes(patched) == ["gpu-training-nonpreempting"] * 2


async def test_a_workload_against_its_owner() -> None:
    job = a_training_job().of_tier("gpu-batch")
    workload = a_scheduling_workload("llm", workers="gpu-training").owned_by(job)
    answer = await FakeApi(job).create(workload)
    assert answer.sentence.startswith(
        "spec.priorityClassName: gpu-training, but the pods of its owner Job/work are gpu-batch"
    )


async def test_a_controllers_workload_is_left_as_it_is() -> None:
    """Its PodGroups have the same owner. A class of ours would read there as the user's own."""
    job = a_training_job()
    workload = a_scheduling_workload("llm", workers="").owned_by(job)
    answer = await FakeApi(job).mutate(workload)
    assert answer.patch == []
    assert (await FakeApi(job).create(workload)).allowed


async def test_a_priority_of_its_own_makes_no_group() -> None:
    workload = a_scheduling_workload("llm", workers="gpu-training").having("spec.podGroupTemplates.0.priority", 5)
    assert (await FakeApi().create(workload)).sentence == (
        "spec.podGroupTemplates[0].priority: 5, but PriorityClass gpu-training has the value 1000; leave the field "
        "out: the API server writes the priority on the PodGroups"
    )


async def test_a_class_that_does_not_exist_can_not_be_corrected_later() -> None:
    job, mistyped = a_training_job(), a_scheduling_workload("llm", workers="gpu-trainning")
    sentence = (
        "spec.podGroupTemplates[0]: workers has priorityClassName gpu-trainning, which is not a PriorityClass, and "
        "templates can't be changed later; write the class of a tier, one of gpu-training, gpu-serving, gpu-batch, "
        "gpu-interactive"
    )
    assert (await FakeApi(job).create(mistyped.owned_by(job))).sentence == sentence
    answer = await FakeApi().create(mistyped)
    assert (answer.allowed, answer.warnings) == (True, [sentence]), "it may be of pods without GPUs"


async def test_a_workload_of_pods_without_gpus_is_none_of_ours() -> None:
    owner = a_deployment(a_pod().asking(0))
    world = FakeApi(owner)
    world.known.live["house-high"] = PriorityClass("house-high", 500)
    for workload in (a_scheduling_workload("web", pods="house-high"), a_scheduling_workload("web", pods="")):
        for each in (workload, workload.owned_by(owner)):
            assert (await world.mutate(each)).patch == []
            assert (await world.create(each)).allowed


@pytest.mark.parametrize("half", ["metadata", "spec"])
async def test_half_a_workload_is_left_alone(half: str) -> None:
    workload = a_scheduling_workload("llm", workers="gpu-training").having(half, None)
    world = FakeApi()
    assert (await world.mutate(workload)).patch == []
    assert (await world.validate(workload)).allowed is (half == "spec"), "without templates nothing makes it ours"


async def test_in_audit_a_workload_is_left_alone() -> None:
    world = FakeApi(policy=a_policy(mode="Audit"))
    workload = a_scheduling_workload("llm", driver="gpu-batch", workers="gpu-training")
    answer = await world.create(workload)
    assert answer.allowed
    assert "driver has priorityClassName gpu-batch" in answer.audit["would-refuse"]


def in_a_tree(group: Built, parent: str = "tree") -> Built:
    return group.having("spec.parentCompositePodGroupName", parent)


async def test_a_whole_tree_of_groups_has_the_tier_of_its_owners_pods() -> None:
    """The scheduler starts no group of a tree in which one priority differs."""
    job = a_training_job()
    world = FakeApi(job)
    for group in (a_composite_podgroup("tree"), in_a_tree(a_podgroup("leaf")), in_a_tree(a_composite_podgroup("mid"))):
        spec = (await world.mutate(group.owned_by(job))).patched["spec"]
        assert (spec["priorityClassName"], spec["priority"]) == ("gpu-training", 1000)


async def test_a_group_takes_the_tier_of_the_group_above_it() -> None:
    world = FakeApi(a_composite_podgroup("tree").of_tier("gpu-batch"))
    assert (await world.mutate(in_a_tree(a_podgroup("leaf")))).patched["spec"]["priority"] == 400
    assert (await world.mutate(in_a_tree(a_podgroup("leaf"), "absent"))).patch == []


async def test_a_part_of_a_tree_is_not_raised() -> None:
    world = FakeApi(a_composite_podgroup("tree"))
    leaf = in_a_tree(a_podgroup("leaf").of_tier("gpu-training"))
    assert (await world.mutate(leaf)).patch == []
    assert (await world.validate(leaf)).sentence == (
        "metadata.labels[gpu-tiers.dev/tier]: gpu-training, but CompositePodGroup/tree above it has priorityClassName "
        "none; all groups of a tree share one priority: name the tier on the root, or on the workload that makes the "
        "groups"
    )
    allowed = await FakeApi(a_composite_podgroup("tree"), policy=a_policy(mode="Audit")).create(leaf)
    assert allowed.allowed, "in Audit the root has no class from us"


async def test_a_composite_group_keeps_its_disruption_mode() -> None:
    """`all` on it would need `all` on each group below it, and those may say otherwise."""
    answer = await FakeApi().create(a_composite_podgroup("tree").of_tier("gpu-training"))
    assert answer.patched["spec"]["disruptionMode"] == {"single": {}}
    assert answer.warnings[0].startswith("[gang-in-parts]")


async def test_all_templates_of_a_tree_get_one_class() -> None:
    workload = a_scheduling_workload("llm").having("spec.compositePodGroupTemplates", [a_template_tree()])
    patched = (await FakeApi().mutate(workload.of_tier("gpu-training"))).patched["spec"]
    (tree,) = patched["compositePodGroupTemplates"]
    assert {each["priorityClassName"] for each in (tree, *tree["podGroupTemplates"])} == {"gpu-training"}

    mixed = workload.having("spec.compositePodGroupTemplates.0.priorityClassName", "gpu-batch")
    mixed = mixed.having("spec.compositePodGroupTemplates.0.podGroupTemplates.1.priorityClassName", "gpu-training")
    assert (await FakeApi().validate(mixed)).sentence.startswith(
        "spec.compositePodGroupTemplates[0].podGroupTemplates[1]: tree has priorityClassName gpu-batch, and worker"
    )


def a_template_tree() -> Tree:
    """A composite template with a leader and its workers, as LeaderWorkerSet would write them."""
    gang = {"schedulingPolicy": {"gang": {"minCount": 2}}}
    leaves = [{"name": name, **gang} for name in ("leader", "workers")]
    return {"name": "tree", "schedulingPolicy": {"gang": {"minGroupCount": 2}}, "podGroupTemplates": leaves}
