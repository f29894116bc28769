"""Placement as a patch: a gang close together, replicas apart, on the tier's nodes; what the user wrote stays."""

import pytest

from tests.builders import (
    PodBuilder,
    Tree,
    WorkloadBuilder,
    a_job,
    a_notebook,
    a_pod,
    a_policy,
    a_pytorchjob,
    a_replicaset,
    a_tenant,
    a_workload,
)
from tests.builders.operators import a_jobset, a_lws
from tests.builders.world import FakeApi

RACK, NODE = "topology.kubernetes.io/rack", "kubernetes.io/hostname"
JOB_NAME = "training.kubeflow.org/job-name"
PACK = {"strategy": "Pack", "topologyKey": RACK}
SPREAD = {"strategy": "Spread", "topologyKey": "topology.kubernetes.io/zone"}
GANG = a_pytorchjob(name="llm", workers=4)
WORKER = a_pod().asking().owned_by(GANG).labelled({JOB_NAME: "llm"})
OTHER_POD = {"labelSelector": {"matchLabels": {"app": "cache"}}, "topologyKey": NODE}


class Placed:
    """A pod of a tier under that tier's placement."""

    def __init__(self, spec: Tree, said: str) -> None:
        self.spec = spec
        self.said = said


async def placed(pod: PodBuilder | Tree, *owners: WorkloadBuilder, tier: str = "gpu-training", **how: object) -> Placed:
    """The pod after its patch; a second pass must leave it alone, and says the same."""
    world = FakeApi(*owners, policy=a_policy(placement={tier: how}))
    patched = (await world.mutate(pod)).patched
    assert (await world.mutate(patched)).patch == []
    assert (await world.validate(world.stored(patched))).allowed
    said = {verdict.placement for _, _, verdict, _ in world.records}
    assert len(said) == 1, said
    return Placed(patched["spec"], said.pop())


def near(key: str, value: str, *topology_keys: str) -> Tree:
    """A wish to lie near the pods with a label."""
    selector = {"matchLabels": {key: value}}
    return {
        "podAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": weight, "podAffinityTerm": {"labelSelector": selector, "topologyKey": topology_key}}
                for weight, topology_key in zip((100, 50), topology_keys, strict=False)
            ]
        }
    }


async def test_a_gang_is_packed_by_its_operators_label_on_a_rack_and_there_on_few_nodes() -> None:
    found = await placed(WORKER, GANG, **PACK)
    assert found.spec["affinity"] == near(JOB_NAME, "llm", RACK, NODE)
    assert found.said == f"Pack by {RACK} with {JOB_NAME}=llm"


async def test_packed_by_node_there_is_one_wish() -> None:
    found = await placed(WORKER, GANG, strategy="Pack", topologyKey=NODE)
    assert found.spec["affinity"] == near(JOB_NAME, "llm", NODE)


async def test_a_jobset_is_one_gang_of_many_jobs() -> None:
    jobset = a_jobset(2, parallelism=2).of_tier("gpu-training")
    job = a_job(name="work-node-0").owned_by(jobset)
    labels = {"jobset.sigs.k8s.io/jobset-name": "work", "batch.kubernetes.io/job-name": "work-node-0"}
    found = await placed(a_pod().asking().owned_by(job).labelled(labels), job, jobset, **PACK)
    assert found.spec["affinity"] == near("jobset.sigs.k8s.io/jobset-name", "work", RACK, NODE)


async def test_the_trials_of_an_experiment_are_no_gang() -> None:
    experiment = a_workload("kubeflow.org/v1beta1", "Experiment", name="search")
    trial = a_workload("kubeflow.org/v1beta1", "Trial", name="search-t1").owned_by(experiment)
    job = a_job(name="search-1", parallelism=2).owned_by(trial)
    labels = {"katib.kubeflow.org/experiment": "search", "batch.kubernetes.io/job-name": "search-1"}
    found = await placed(a_pod().asking().owned_by(job).labelled(labels), job, trial, experiment, **PACK)
    assert found.said == f"Pack by {RACK} with batch.kubernetes.io/job-name=search-1"


async def test_of_a_leaderworkerset_each_group_is_a_gang() -> None:
    lws = a_lws(replicas=2, leaderWorkerTemplate={"size": 2, "workerTemplate": a_pod().asking().template()})
    labels = {"leaderworkerset.sigs.k8s.io/name": "work", "leaderworkerset.sigs.k8s.io/group-key": "8f1d"}
    pod = a_pod().asking().owned_by(lws).labelled(labels).of_tier("gpu-training")
    assert (await placed(pod, lws, **PACK)).said == f"Pack by {RACK} with leaderworkerset.sigs.k8s.io/group-key=8f1d"


async def test_a_group_without_a_workload_is_known_by_the_label_that_people_write() -> None:
    pod = a_pod().asking().of_tier("gpu-training").labelled({"kueue.x-k8s.io/pod-group-name": "mine"})
    assert (await placed(pod, **PACK)).said == f"Pack by {RACK} with kueue.x-k8s.io/pod-group-name=mine"


UNPACKED: dict[str, tuple[PodBuilder, list[WorkloadBuilder], str]] = {
    "a gang of one": (
        WORKER,
        [a_pytorchjob(name="llm", workers=1)],
        f"{JOB_NAME}=llm is a single pod",
    ),
    "an operator whose label is not known": (
        a_pod().asking().owned_by(job := a_workload("run.ai/v1", "RunaiJob", "tune")).labelled({"a": "b"}),
        [job],
        "no label is known that all pods of RunaiJob/tune bear",
    ),
    "a bare pod": (a_pod().asking().of_tier("gpu-training"), [], "the pod has no owner"),
    "a pod that has its node": (WORKER.having("spec.nodeName", "gpu-7"), [GANG], "its node is chosen already"),
}


@pytest.mark.parametrize("case", UNPACKED)
async def test_where_nothing_can_be_packed_it_says_so(case: str) -> None:
    pod, owners, why = UNPACKED[case]
    found = await placed(pod, *owners, **PACK)
    assert "affinity" not in found.spec
    assert found.said == f"Pack changes nothing: {why}"


OWN_WORDS: dict[str, tuple[str, object]] = {
    "affinity": ("spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution", [OTHER_POD]),
    "anti-affinity": ("spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution", [OTHER_POD]),
    "spreading": (
        "spec.topologySpreadConstraints",
        [{"maxSkew": 2, "topologyKey": NODE, "whenUnsatisfiable": "DoNotSchedule"}],
    ),
}


@pytest.mark.parametrize("strategy", [PACK, SPREAD])
@pytest.mark.parametrize("field", OWN_WORDS)
async def test_a_pod_that_says_how_it_lies_to_others_keeps_that(field: str, strategy: dict[str, str]) -> None:
    pod = WORKER.having(*OWN_WORDS[field])
    found = await placed(pod, GANG, **strategy)
    assert {key: found.spec.get(key) for key in ("affinity", "topologySpreadConstraints")} == {
        key: pod.json()["spec"].get(key) for key in ("affinity", "topologySpreadConstraints")
    }
    if strategy is PACK:
        assert found.said == "Pack changes nothing: the pod says itself how it lies to other pods"


@pytest.mark.parametrize("affinity", [None, {}, {"podAffinity": None}, {"podAffinity": {}}, {"nodeAffinity": {}}])
async def test_an_affinity_that_says_nothing_of_pods_is_filled(affinity: object) -> None:
    pod = FakeApi(GANG).sent(WORKER)
    pod["spec"]["affinity"] = affinity
    found = await placed(pod, GANG, **PACK)
    assert found.spec["affinity"]["podAffinity"] == near(JOB_NAME, "llm", RACK, NODE)["podAffinity"]
    assert found.spec["affinity"].keys() >= (affinity or {}).keys()  # type: ignore[attr-defined]


async def test_replicas_are_spread_by_their_labels_and_a_revision_by_its_hash() -> None:
    """Kubernetes' page on topology spread constraints recommends this for Deployments."""
    labels = {"app": "chat", "pod-template-hash": "5d9f"}
    replicas = a_replicaset(a_pod().asking().labelled(labels), name="chat-5d9f", replicas=3)
    pod = a_pod().asking().owned_by(replicas).labelled({**labels, "mesh": "on"}).of_tier("gpu-serving")
    found = await placed(pod, replicas, tier="gpu-serving", **SPREAD)
    assert found.spec["topologySpreadConstraints"] == [
        {
            "topologyKey": key,
            "maxSkew": 1,
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchLabels": {"app": "chat"}},
            "matchLabelKeys": ["pod-template-hash"],
        }
        for key in ("topology.kubernetes.io/zone", NODE)
    ]
    assert found.said == "Spread by topology.kubernetes.io/zone from app=chat"


async def test_the_pods_of_a_group_that_serves_together_are_not_spread() -> None:
    lws = a_lws(replicas=2, leaderWorkerTemplate={"size": 2, "workerTemplate": a_pod().asking().template()})
    pod = a_pod().asking().owned_by(lws).labelled({"leaderworkerset.sigs.k8s.io/name": "work"})
    found = await placed(pod, lws, tier="gpu-serving", **SPREAD)
    assert "topologySpreadConstraints" not in found.spec
    assert found.said.endswith("the pod is one of a gang, by its label leaderworkerset.sigs.k8s.io/name")


async def test_replicas_without_a_label_can_not_be_distinguished_from_others() -> None:
    found = await placed(a_pod().asking().of_tier("gpu-serving"), tier="gpu-serving", **SPREAD)
    assert found.said == "Spread changes nothing: no label is known that only its replicas bear"


GPU_NODES = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
POOL = {"key": "pool", "operator": "Equal", "value": "training", "effect": "NoSchedule"}


async def test_tolerations_are_added_after_those_that_are_there() -> None:
    before = FakeApi(GANG).sent(WORKER)["spec"]["tolerations"]
    found = await placed(WORKER, GANG, tolerations=[GPU_NODES, POOL])
    assert found.spec["tolerations"] == [*before, GPU_NODES, POOL]
    assert found.said == ""


@pytest.mark.parametrize("absent", ["missing", None, []])
async def test_tolerations_that_are_absent_null_or_empty_are_made(absent: object) -> None:
    pod = FakeApi(GANG).sent(WORKER)
    pod["spec"] = {key: value for key, value in pod["spec"].items() if key != "tolerations"}
    if absent != "missing":
        pod["spec"]["tolerations"] = absent
    assert (await placed(pod, GANG, tolerations=[GPU_NODES, POOL])).spec["tolerations"] == [GPU_NODES, POOL]


@pytest.mark.parametrize(
    ("own", "stays_alone"),
    [
        ({"key": "pool", "operator": "Equal", "value": "mine", "effect": "NoSchedule"}, True),
        ({"key": "pool", "operator": "Exists"}, True),
        ({"operator": "Exists"}, True),
        ({"key": "pool", "operator": "Exists", "effect": "NoExecute"}, False),
        ({"key": "other", "operator": "Exists"}, False),
    ],
)
async def test_a_toleration_of_the_same_taint_stays(own: dict[str, str], stays_alone: bool) -> None:
    found = await placed(WORKER.having("spec.tolerations", [own]), GANG, tolerations=[POOL])
    assert found.spec["tolerations"] == ([own] if stays_alone else [own, POOL])


async def test_a_node_selector_is_completed_and_never_changed() -> None:
    wanted = {"example.com/pool": "training", "example.com/disk": "nvme"}
    assert (await placed(WORKER, GANG, nodeSelector=wanted)).spec["nodeSelector"] == wanted
    own = WORKER.having("spec.nodeSelector", {"example.com/pool": "mine"})
    found = await placed(own, GANG, nodeSelector=wanted)
    assert found.spec["nodeSelector"] == {"example.com/pool": "mine", "example.com/disk": "nvme"}


async def test_a_node_affinity_to_the_same_label_stays() -> None:
    line = {"key": "example.com/pool", "operator": "In", "values": ["mine"]}
    path = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
    own = WORKER.having(path, [{"matchExpressions": [line]}])
    assert "nodeSelector" not in (await placed(own, GANG, nodeSelector={"example.com/pool": "training"})).spec


async def test_the_pods_of_a_daemonset_have_their_nodes() -> None:
    daemons = a_workload("apps/v1", "DaemonSet", template=a_pod().asking().template())
    pod = a_pod().asking().owned_by(daemons).of_tier("gpu-serving")
    assert "nodeSelector" not in (await placed(pod, daemons, tier="gpu-serving", nodeSelector={"a": "b"})).spec


@pytest.mark.parametrize(("own", "then"), [(None, 3600), (60, 60), (86_400, 86_400)])
async def test_a_runtime_limit_is_for_pods_that_have_none(own: int | None, then: int) -> None:
    pod = WORKER if own is None else WORKER.having("spec.activeDeadlineSeconds", own)
    assert (await placed(pod, GANG, maxRuntimeSeconds=3600)).spec["activeDeadlineSeconds"] == then


async def test_another_tiers_pods_get_nothing() -> None:
    notebook = a_notebook(a_pod().asking())
    found = await placed(a_pod().asking().owned_by(notebook), notebook, maxRuntimeSeconds=60, **PACK)
    assert "activeDeadlineSeconds" not in found.spec
    assert found.said == ""


async def test_a_demoted_pod_gets_what_its_lower_tier_has() -> None:
    tenant = a_tenant(onExceed="Demote").allowing("0", tier="gpu-training").allowing("0", tier="gpu-serving")
    placement = {"gpu-training": {"maxRuntimeSeconds": 60}, "gpu-batch": {"maxRuntimeSeconds": 30}}
    world = FakeApi(GANG, tenant, policy=a_policy(placement=placement))
    patched = (await world.mutate(WORKER)).patched
    assert patched["spec"]["priorityClassName"] == "gpu-batch"
    assert patched["spec"]["activeDeadlineSeconds"] == 30
    assert (await world.create(WORKER)).allowed


async def test_a_pod_counts_on_the_flavor_that_its_tiers_node_selector_names() -> None:
    """And so does its workload, which bears no node selector itself."""
    h100 = {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}
    policy = a_policy(
        resourceFlavors=[{"name": "h100", "nodeLabels": h100}], placement={"gpu-training": {"nodeSelector": h100}}
    )
    world = FakeApi(GANG, a_tenant().allowing("3", flavor="h100"), policy=policy)
    refused = await world.validate(GANG.having("metadata.uid", "another"))
    assert "h100" in refused.sentence
    for _ in range(3):
        assert (await world.create(WORKER)).allowed
    assert "h100" in (await world.create(WORKER)).sentence
