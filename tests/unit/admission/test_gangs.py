"""A gang and its pods get one answer: what is admitted when it is applied is never refused when its pods come."""

from collections.abc import Iterator
from decimal import Decimal

import msgspec
import pytest

from tests.builders import Tree, WorkloadBuilder, a_namespace, a_pod, a_pytorchjob, a_tenant, a_workload
from tests.builders.built import Built
from tests.builders.operators import CPU_POD, GPU_POD, a_lws, a_raycluster
from tests.builders.pods import PodBuilder
from tests.builders.world import FakeApi
from tests.unit.policy.workloads.counted import GPUS
from webhook.ledger.account import written_account
from webhook.objects.group_kind import GroupKind
from webhook.objects.refusal import shown
from webhook.policy.assignment.request import GANG
from webhook.policy.quota.tenant_quotas import watched_tenant_quota
from webhook.policy.workloads.kind_table import BUILT_IN
from webhook.policy.workloads.templates import pod_templates
from webhook.policy.workloads.workload import has_ended


def row_of(tree: Tree):
    group = tree["apiVersion"].rpartition("/")[0]
    return BUILT_IN.by_kind[GroupKind(group, tree["kind"])]


def pods_of(gang: WorkloadBuilder) -> Iterator[Tree]:
    """The pods that its operator makes of its templates, as many as it can't do without."""
    tree = gang.json()
    for each in pod_templates(tree, row_of(tree)):
        for number in range(each.least):
            made = {"metadata": {}, **each.pod}
            metadata = {
                **made["metadata"],
                "name": f"{tree['metadata']['name']}-{each.path}-{number}",
                "namespace": "team-alpha",
                "ownerReferences": [gang.reference()],
            }
            yield {"apiVersion": "v1", "kind": "Pod", **made, "metadata": metadata}


def asked(pod: Tree) -> int:
    limits = (each.get("resources", {}) for each in pod["spec"].get("containers", []))
    return sum(int((each.get("limits") or each.get("requests") or {}).get("nvidia.com/gpu", 0)) for each in limits)


GANGS = {
    name: gang
    for name, (gang, gpus) in GPUS.items()
    if gpus > 1 and row_of(gang.json()).gang and sum(1 for pod in pods_of(gang) if asked(pod)) > 1
}


@pytest.mark.parametrize("gang", GANGS.values(), ids=GANGS.keys())
async def test_a_gang_that_was_admitted_gets_all_of_its_pods_and_no_other_gets_in(gang: WorkloadBuilder) -> None:
    pods = list(pods_of(gang))
    total = sum(map(asked, pods))
    tenant = a_tenant().allowing(str(total))
    world = FakeApi(tenant, gang)
    applied = await world.validate(gang)
    assert applied.allowed, applied.sentence
    booked = await world.create(a_pod().asking(1))
    assert f"the total is at {total} of {total} GPUs; this pod asks for 1." in booked.sentence
    for pod in pods:
        answer = await world.create(pod)
        assert answer.allowed, answer.sentence
    another = await world.create(a_pod().asking(1))
    assert f"the total is at {total} of {total} GPUs; this pod asks for 1." in another.sentence


def test_every_operators_gangs_are_among_them():
    tried = {row_of(gang.json()).group for gang in GANGS.values()}
    assert {row.group for row in BUILT_IN.rows if row.gang and (row.templates or row.wraps)} == tried


async def test_the_refusal_names_the_whole() -> None:
    running = a_pytorchjob(a_pod().asking(5), name="running", workers=2)
    world = FakeApi(a_tenant().allowing("16", tier="gpu-training").allowing("32"))
    assert (await world.validate(running)).allowed
    refused = await world.validate(a_pytorchjob(a_pod().asking(8), name="llm-finetune", workers=2))
    assert refused.sentence.startswith(
        "exceeded quota: PyTorchJob llm-finetune asks for 16 GPUs (2 x 8); tenant alpha has 6 of gpu-training left. "
        "Would fit: gpu-serving (22 left)"
    )


async def test_where_the_tenant_demotes_and_its_total_is_full_the_total_is_named() -> None:
    running = a_pytorchjob(a_pod().asking(2), name="running", workers=1).of_tier("gpu-batch")
    tenant = a_tenant(onExceed="Demote").allowing("2", tier="gpu-training").allowing("6")
    world = FakeApi(tenant, running)
    assert (await world.create(a_pod().asking(2).owned_by(running))).allowed
    refused = await world.validate(a_pytorchjob(a_pod().asking(3), name="next", workers=2))
    assert refused.sentence == (
        "exceeded quota: PyTorchJob next asks for 6 GPUs (2 x 3); tenant alpha has 4 left, "
        "enough for 1 of these pods, but they start only together. "
        "Would fit: no tier now. See TenantQuota/alpha."
    )


async def test_a_gang_that_grows_reads_that_pods_that_run_keep_their_tier() -> None:
    two, four = (a_pytorchjob(a_pod().asking(1), workers=count) for count in (2, 4))
    world = FakeApi(a_tenant(onExceed="Demote").allowing("4", tier="gpu-training").allowing("8"), two)
    assert (await world.create(a_pod(name="other").asking(1).of_tier("gpu-training"))).allowed
    assert (await world.validate(two)).warnings == []
    (warning,) = (await world.update(two, four)).warnings
    assert warning.startswith(
        "tenant alpha has no room for it in gpu-training: new pods of this PyTorchJob run as gpu-batch"
    )
    assert warning.endswith("; running pods keep their tier")


@pytest.mark.parametrize("later", ["Deny", "Hold", "Warn"])
async def test_a_demoted_gang_stays_at_its_tier_when_its_tenant_demotes_no_more(later: str) -> None:
    """Its next pod would wait or be refused in the full row, while the gang's slot in the lower tier is reserved."""
    gang = a_pytorchjob(a_pod().asking(1).of_tier("gpu-training"), workers=2)
    tenants = [a_tenant(onExceed=each).allowing("2", tier="gpu-training").allowing("4") for each in ("Demote", later)]
    world = FakeApi(tenants[0], gang)
    assert (await world.create(a_pod(name="other").asking(2).of_tier("gpu-training"))).allowed
    assert (await world.validate(gang)).allowed
    status = {"ledger": written_account(world.ledger.store.newest("alpha").account)}
    seen = watched_tenant_quota(msgspec.json.encode({**tenants[1].json(), "status": status}))
    world.known.active = (seen.tenant,)
    for name in ("finetune-0", "finetune-1"):
        pod = a_pod(name).asking(1).of_tier("gpu-training").owned_by(gang)
        assert (await world.mutate(pod)).patched["spec"]["priorityClassName"] == "gpu-batch"
        assert (await world.create(pod)).allowed


async def test_a_gang_too_large_for_its_tier_is_offered_those_with_room_now() -> None:
    tenant = a_tenant().allowing("4", tier="gpu-training").allowing("8")
    world = FakeApi(tenant)
    assert (await world.create(a_pod().asking(3).of_tier("gpu-batch"))).allowed
    refused = await world.validate(a_pytorchjob(a_pod().asking(3), name="next", workers=2))
    assert refused.sentence == (
        "tenant alpha: gpu-training allows 4 GPUs; this PyTorchJob asks for 6 in all. Would fit: no tier now; once "
        "there is room: gpu-serving, gpu-batch, gpu-interactive. See TenantQuota/alpha."
    )


async def test_a_pod_alone_is_charged_by_itself() -> None:
    world = FakeApi(a_tenant().allowing("4"))
    assert (await world.validate(a_pytorchjob(a_pod().asking(4), name="one"))).allowed
    second = await world.validate(a_pytorchjob(a_pod().asking(4), name="two"))
    assert (second.allowed, second.warnings) == (True, []), "nothing is booked before a pod comes"


def stage(name: str, gpus: int, pods: int = 2, **after: str) -> Tree:
    """One Job of a JobSet, which waits until others have the status that is named."""
    waits = [{"name": each, "status": status} for each, status in after.items()]
    job = {"parallelism": pods, "completions": pods, "template": a_pod().asking(gpus).template()}
    return {"name": name, "template": {"spec": job}, **({"dependsOn": waits} if waits else {})}


def a_jobset_of(*jobs: Tree) -> WorkloadBuilder:
    return a_workload("jobset.x-k8s.io/v1alpha2", "JobSet", "staged", replicatedJobs=list(jobs))


STAGES: dict[str, tuple[list[Tree], int]] = {
    "none waits": ([stage("a", 1), stage("b", 3)], 8),
    "one waits until another runs": ([stage("a", 1), stage("b", 3, a="Ready")], 8),
    "one waits for the end of another": ([stage("a", 1), stage("b", 3, a="Complete")], 6),
    "the first asks for more, with fewer pods": ([stage("a", 4, pods=2), stage("b", 1, pods=6, a="Complete")], 8),
    "one runs beside both": ([stage("a", 1), stage("b", 3, a="Complete"), stage("c", 1)], 8),
    "a chain": ([stage("a", 1), stage("b", 2, a="Complete"), stage("c", 3, b="Ready")], 10),
    "a chain of ends": ([stage("a", 4), stage("b", 1, a="Complete"), stage("c", 1, b="Complete")], 8),
    "two wait for one": ([stage("a", 3), stage("b", 2, a="Complete"), stage("c", 2, a="Complete")], 8),
    "more than are told apart": (
        [stage("0", 1, pods=1), *(stage(f"{n}", 1, 1, **{"0": "Complete"}) for n in range(1, 9))],
        9,
    ),
}


@pytest.mark.parametrize(("jobs", "needed"), STAGES.values(), ids=STAGES)
async def test_a_jobset_in_stages_needs_what_runs_together(jobs: list[Tree], needed: int) -> None:
    jobset = a_jobset_of(*jobs)
    fits = await FakeApi(a_tenant().allowing(str(needed)), jobset).validate(jobset)
    assert (fits.allowed, [each for each in fits.warnings if "in all" in each]) == (True, [])
    never = await FakeApi(a_tenant().allowing(str(needed - 1)), jobset).validate(jobset)
    assert "tenant alpha: the total allows " in never.sentence


@pytest.mark.parametrize(
    "jobs",
    [
        [stage("a", 1, a="Complete")],
        [stage("a", 1, b="Complete"), stage("b", 1, a="Complete")],
        [stage("a", 1), stage("a", 1, a="Complete")],
        [{**stage("a", 1), "dependsOn": "b"}, {**stage("b", 1), "dependsOn": [None, {"status": "Complete"}]}],
    ],
)
async def test_waits_that_jobset_itself_refuses_are_no_fault_of_ours(jobs: list[Tree]) -> None:
    assert (await FakeApi(a_tenant().allowing("4")).validate(a_jobset_of(*jobs))).allowed


async def test_a_count_that_is_none_in_a_later_stage_is_named_with_its_place() -> None:
    jobs = [stage("a", 1), {**stage("b", 1, a="Complete"), "replicas": "x"}]
    refused = await FakeApi(a_tenant().allowing("4")).validate(a_jobset_of(*jobs))
    assert refused.sentence.startswith("spec.replicatedJobs.1.replicas: ")


async def test_the_stages_of_a_jobset_use_one_reservation() -> None:
    jobset = a_jobset_of(stage("tokenize", 4), stage("train", 4, tokenize="Complete"))
    world = FakeApi(a_tenant().allowing("8"), jobset)
    assert (await world.validate(jobset)).allowed
    assert not (await world.create(a_pod().asking(1))).allowed
    for number in range(2):
        assert (await world.create(a_pod(name=f"tokenize-{number}").asking(4).owned_by(jobset))).allowed
    assert not (await world.create(a_pod(name="train-0").asking(4).owned_by(jobset))).allowed, "the others still run"


@pytest.mark.parametrize("least", [0, 1, 2])
async def test_rays_autoscaler_may_ask_for_more_than_a_row_holds(least: int) -> None:
    def cluster(workers: int) -> WorkloadBuilder:
        asked_for = a_raycluster(replicas=workers, minReplicas=least, maxReplicas=10)
        return asked_for.having("spec.enableInTreeAutoscaling", value=True)

    world = FakeApi(a_tenant().allowing("5"))
    answer = await world.update(cluster(2), cluster(6))
    assert answer.allowed, "pods beyond what the cluster can't do without are admitted one by one, as far as they fit"
    assert "the total allows 5 GPUs; this RayCluster asks for 6 in all." in " ".join(answer.warnings)


async def test_a_refusal_by_the_floor_says_the_floor() -> None:
    """The cluster would run with 6 workers, and asks for 10: 6 is what the tenant needs."""
    asked_for = a_raycluster(replicas=10, minReplicas=6, maxReplicas=10)
    cluster = asked_for.having("spec.enableInTreeAutoscaling", value=True)
    never = await FakeApi(a_tenant().allowing("5")).validate(cluster)
    assert "tenant alpha: the total allows 5 GPUs; this RayCluster asks for at least 6, at most 10. " in never.sentence


async def test_ray_workers_that_nobody_scales_are_refused_as_a_whole() -> None:
    fixed = a_raycluster(replicas=6, minReplicas=1, maxReplicas=10)
    refused = await FakeApi(a_tenant().allowing("5")).validate(fixed)
    assert "the total allows 5 GPUs; this RayCluster asks for 6 in all." in refused.sentence


@pytest.mark.parametrize(
    ("of_job", "of_tasks", "needed"),
    [
        (None, (None, None), 8),
        (None, (1, 3), 4),
        (7, (1, 3), 7),
        (8, (1, 3), 8),
        (4, (None, None), 4),
        (2, (1, 3), 2),
        (1, (1, 3), 0),
        (99, (1, 3), 8),
    ],
)
async def test_a_volcano_job_needs_what_its_group_waits_for(
    of_job: int | None, of_tasks: tuple[int | None, int | None], needed: int
) -> None:
    """The gang has a master and 7 workers; one that a single pod can start is none. Source: Volcano's gang plugin."""
    counts = zip(("master", "worker"), (1, 7), of_tasks, strict=True)
    tasks = [
        {"name": name, "replicas": count, "template": a_pod().asking(1).template(), "minAvailable": least}
        for name, count, least in counts
    ]
    job = a_workload("batch.volcano.sh/v1alpha1", "Job", tasks=tasks, minAvailable=of_job)
    world = FakeApi(a_tenant().allowing("8"))
    assert (await world.validate(job)).allowed
    assert sum(world.ledger.usage(world.known.tenants()[0]).values()) == needed


async def test_an_audit_books_nothing() -> None:
    world = FakeApi(a_tenant().allowing("4"))
    gang = a_pytorchjob(a_pod().asking(2), workers=2)
    for _ in range(2):
        assert (await world.validate(gang, dryRun=True)).allowed
    tenant = world.known.tenants()[0]
    assert sum(world.ledger.usage(tenant).values()) == Decimal(0)


COSCHEDULED = Built(
    {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "PodGroup",
        "metadata": {"name": "train", "namespace": "team-alpha"},
        "spec": {"minMember": 4},
    }
)
VOLCANOS = COSCHEDULED.having("apiVersion", "scheduling.volcano.sh/v1beta1")
NATIVE = COSCHEDULED.having("apiVersion", "scheduling.k8s.io/v1beta1").having(
    "spec", {"priorityClassName": "gpu-batch", "schedulingPolicy": {"gang": {"minCount": 4}}}
)
NAMES_GROUP = {"kueue.x-k8s.io/pod-group-name": "train"}
IN_KUEUE, OF_FOUR = a_pod().labelled(NAMES_GROUP), {"kueue.x-k8s.io/pod-group-total-count": "4"}
MEMBERS = {
    "Kueue": IN_KUEUE.having("metadata.annotations", OF_FOUR),
    "Kueue, annotated": a_pod().having("metadata.annotations", {**NAMES_GROUP, **OF_FOUR}),
    "coscheduling": a_pod().labelled({"scheduling.x-k8s.io/pod-group": "train"}),
    "Volcano": a_pod().having("metadata.annotations", {"scheduling.k8s.io/group-name": "train"}),
    "Kubernetes": a_pod().having("spec.schedulingGroup", {"podGroupName": "train"}),
}
GROUPS = {"coscheduling": COSCHEDULED, "Volcano": VOLCANOS, "Kubernetes": NATIVE}


@pytest.mark.parametrize("system", MEMBERS)
async def test_a_group_of_pods_is_admitted_whole_with_the_first(system: str) -> None:
    member = MEMBERS[system].asking(2)
    small = FakeApi(a_tenant().allowing("7"), GROUPS.get(system, a_namespace()))
    refused = await small.create(member)
    assert refused.sentence.startswith("tenant alpha: the total allows 7 GPUs; group train asks for 8 in all.")
    world = FakeApi(a_tenant().allowing("9"), GROUPS.get(system, a_namespace()))
    assert (await world.create(member)).allowed
    other = await world.create(a_pod().asking(2))
    assert "the total is at 8 of 9 GPUs; this pod asks for 2." in other.sentence
    for _ in range(3):
        assert (await world.create(member)).allowed
    assert "the total is at 8 of 9 GPUs" in (await world.create(member)).sentence, "a fifth is charged by itself"


async def test_each_further_group_of_a_leaderworkerset_is_booked_whole_with_its_first_pod() -> None:
    """Its controller creates all leaders first. If each took a GPU of the first group, no group could run."""
    lws = a_lws(replicas=3, leaderWorkerTemplate={"size": 3, "workerTemplate": GPU_POD})
    world = FakeApi(a_tenant().allowing("7"), lws)
    assert (await world.validate(lws)).allowed

    def pod_of(group: int) -> PodBuilder:
        return a_pod().asking().owned_by(lws).labelled({"leaderworkerset.sigs.k8s.io/group-index": str(group)})

    leaders = [await world.create(pod_of(group)) for group in range(3)]
    assert [each.allowed for each in leaders] == [True, True, False]
    name = lws.json()["metadata"]["name"]
    assert f"the total is at 6 of 7 GPUs; group {name}-2 asks for 3." in leaders[2].sentence
    for group in (0, 0, 1, 1):
        assert (await world.create(pod_of(group))).allowed
    marks = [(await world.mutate(pod_of(group))).patched["metadata"]["annotations"].get(GANG) for group in (0, 1)]
    assert marks == [lws.json()["metadata"]["uid"], f"{lws.json()['metadata']['uid']}/1"]


async def test_a_group_of_a_leaderworkerset_with_one_gpu_pod_is_no_gang() -> None:
    lws = a_lws(replicas=2, leaderWorkerTemplate={"size": 2, "leaderTemplate": CPU_POD, "workerTemplate": GPU_POD})
    world = FakeApi(a_tenant().allowing("1"), lws)
    worker = a_pod().asking().owned_by(lws).labelled({"leaderworkerset.sigs.k8s.io/group-index": "1"})
    assert (await world.create(worker)).allowed
    assert "the total is at 1 of 1 GPU; this pod asks for 1." in (await world.create(worker)).sentence


@pytest.mark.parametrize("count", ["four", "0", "\u0664", "9" * 5000], ids=["a word", "none", "arabic", "endless"])
async def test_a_count_of_a_group_that_is_none(count: str) -> None:
    wrong = IN_KUEUE.asking(1).having("metadata.annotations", {"kueue.x-k8s.io/pod-group-total-count": count})
    answer = await FakeApi(a_tenant().allowing("9")).validate(wrong)
    assert answer.sentence == (
        f"metadata.annotations[kueue.x-k8s.io/pod-group-total-count]: {shown(count)} is not a number of pods; "
        "write a number such as 4"
    )


async def test_a_rayjob_that_is_released_is_booked() -> None:
    """Its status still says Suspended when somebody releases it."""
    gang = GPUS["a RayJob"][0].having("status.jobDeploymentStatus", "Suspended")
    total = sum(map(asked, pods_of(gang)))
    world = FakeApi(a_tenant().allowing(str(total)))
    suspended, released = gang.having("spec.suspend", True), gang.having("spec.suspend", False)
    assert (await world.update(suspended, released)).allowed
    assert f"the total is at {total} of {total} GPUs" in (await world.create(a_pod().asking(1))).sentence


@pytest.mark.parametrize("conditions", [[{"type": [], "status": "True"}], {"type": "Failed"}, [None], "Failed", [7]])
def test_odd_conditions_end_nothing(conditions: object) -> None:
    assert not has_ended({"status": {"conditions": conditions, "phase": ["Failed"]}})


async def test_a_label_on_a_finished_job_needs_no_room() -> None:
    done = {"conditions": [{"type": "Complete", "status": "True"}]}
    job = a_pytorchjob(a_pod().asking(4), workers=2).having("status", done)
    answer = await FakeApi(a_tenant().allowing("8")).update(job, job.of_tier("gpu-batch"))
    assert answer.allowed


GATES = [{"name": "gpu-tiers.dev/quota"}]


async def test_a_member_without_gpus_waits_with_the_others_that_wait_for_quota() -> None:
    """The launcher would begin, find no worker, and fail so often that the job gives up."""
    master = {"replicas": 1, "template": a_pod().running().template()}
    job = a_pytorchjob(a_pod().asking(2), workers=2).having("spec.pytorchReplicaSpecs.Master", master)
    labels = {"training.kubeflow.org/job-name": "work"}
    launcher = a_pod().running().owned_by(job).labelled(labels)
    world = FakeApi(job, a_tenant(onExceed="Hold").allowing("6", tier="gpu-training"))
    patched = (await world.mutate(launcher)).patched
    assert patched["spec"]["schedulingGates"] == GATES
    assert (await world.validate(patched)).allowed
    refusing = FakeApi(job, a_tenant().allowing("6", tier="gpu-training"))
    assert "schedulingGates" not in (await refusing.mutate(launcher)).patched["spec"]
    lone = a_pod().running().labelled({"gpu-tiers.dev/tier": "gpu-training"})
    assert "schedulingGates" not in (await world.mutate(lone)).patched["spec"]
