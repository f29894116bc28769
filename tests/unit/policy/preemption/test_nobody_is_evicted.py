"""Why nobody is evicted for a pod that waits for devices of DRA."""

from collections.abc import Callable

import pytest

from tests.builders.built import Tree
from tests.builders.claims import DEVICE_CLASS
from tests.builders.dra_cluster import NOW, DraCluster, at
from webhook.objects.refusal import Phrase
from webhook.policy.preemption.node_state import RESERVED
from webhook.policy.preemption.preemptor import EvictionPlan
from webhook.policy.preemption.reservation import Reservation
from webhook.sentences.sentence import sentence

Change = Callable[[DraCluster], object]


def full() -> DraCluster:
    """One device, a pod of gpu-batch that holds it, and one of gpu-training that waits."""
    cluster = DraCluster()
    cluster.node("a")
    cluster.running("low", "a")
    cluster.waiting("high")
    return cluster


def on(pod: str, **spec: object) -> Change:
    return lambda cluster: cluster.pods[pod]["spec"].update(spec)


def claimed(**exactly: object) -> Change:
    """The request of the pod that waits has these fields too."""

    def change(cluster: DraCluster) -> None:
        cluster.claims["team-alpha/high-gpu"]["spec"]["devices"]["requests"][0]["exactly"].update(exactly)

    return change


def held_by(**status: object) -> Change:
    return lambda cluster: cluster.claims["team-alpha/low-gpu"]["status"].update(status)


def tainted(cluster: DraCluster) -> None:
    cluster.rules.append(
        {"deviceSelector": {"driver": DEVICE_CLASS}, "taint": {"key": "broken", "effect": "NoSchedule"}}
    )


def shareable(cluster: DraCluster) -> None:
    cluster.slices[0]["spec"]["devices"][0].update(allowMultipleAllocations=True)


def result(**more: object) -> Tree:
    whole = {"request": "gpu", "driver": DEVICE_CLASS, "pool": "a", "device": "gpu-0", **more}
    return {"devices": {"results": [whole]}}


TERM = {"labelSelector": {}, "topologyKey": "kubernetes.io/hostname"}
REQUIRED = {"requiredDuringSchedulingIgnoredDuringExecution": [TERM]}


@pytest.mark.parametrize(
    ("why", "change"),
    [
        # It is no preemptor.
        ("preemptor-never", on("high", preemptionPolicy="Never")),
        ("preemptor-without-tier", on("high", priorityClassName="system-cluster-critical")),
        ("preemptor-of-other-scheduler", on("high", schedulerName="volcano")),
        ("preemptor-too-old", on("high", tolerations=[])),
        ("preemptor-too-old", on("high", tolerations=[{"key": RESERVED, "value": "gpu-serving"}])),
        ("preemptor-exempt", lambda c: c.pods["high"]["metadata"].update(namespace="kube-system")),
        ("preemptor-not-settled", lambda c: c.waiting("high", since=-2)),
        ("preemptor-not-settled", lambda c: c.pods["high"]["status"].pop("conditions")),
        ("preemptor-nominated", lambda c: c.pods["high"]["status"].update(nominatedNodeName="a")),
        ("preemptor-gone", lambda c: c.ending("high")),
        ("preemptor-claim-missing", lambda c: c.pods["high"]["status"].pop("resourceClaimStatuses")),
        ("preemptor-claim-missing", lambda c: c.claims.pop("team-alpha/high-gpu")),
        ("preemptor-claim-missing", lambda c: c.claims["team-alpha/high-gpu"]["metadata"].update(
            deletionTimestamp=at(-10), finalizers=["mallory.example.com/kept"])),
        ("preemptor-claim-missing", lambda c: c.claims["team-alpha/high-gpu"]["metadata"].pop("ownerReferences")),
        ("preemptor-class-missing", claimed(deviceClassName="gone")),
        # Nobody is of a lower tier.
        ("preemption-nobody-lower", on("low", priorityClassName="gpu-training")),
        ("preemption-nobody-lower", on("low", priority=1000)),
        ("preemption-nobody-lower", on("low", priorityClassName="", priority=0)),
        ("preemption-nobody-lower", lambda c: c.pods["low"]["metadata"].update(namespace="kube-system")),
        ("preemption-nobody-lower", lambda c: c.pods["low"]["metadata"].update(
            annotations={"kubernetes.io/config.mirror": "x"})),
        ("preemption-nobody-lower", lambda c: c.ending("low", -90)),
        ("preemption-nobody-lower", lambda c: c.ending("low", 7200)),
        # The device can't be freed by an eviction.
        ("preemption-nobody-lower", held_by(reservedFor=[
            {"resource": "pods", "name": "low", "uid": "low"}, {"resource": "pods", "name": "x", "uid": "x"}])),
        ("preemption-too-few-devices", held_by(reservedFor=[{"resource": "podgroups", "name": "g", "uid": "low"}])),
        ("preemption-too-few-devices", held_by(reservedFor=[])),
        ("preemption-too-few-devices", tainted),
        ("preemption-too-few-devices", lambda c: c.slices[0]["spec"]["pool"].update(resourceSliceCount=2)),
        ("preemption-too-few-devices", shareable),
        ("preemption-too-few-devices", claimed(count=2)),
        # Something may be had already.
        ("preemption-devices-free", lambda c: c.node("b")),
        ("preemption-devices-free", held_by(allocation=result(adminAccess=True))),
        ("preemption-holders-ending", lambda c: c.ending("low")),
        ("preemption-holders-ending", lambda c: c.ending("low", -30)),
        # No node takes it.
        ("preemption-no-node", lambda c: c.nodes["a"]["spec"].update(unschedulable=True)),
        ("preemption-no-node", lambda c: c.nodes["a"]["status"].update(conditions=[])),
        ("preemption-no-node", on("high", nodeSelector={"zone": "b"})),
        ("preemption-no-node", on("low", affinity={"podAntiAffinity": REQUIRED})),
        ("preemption-no-node", lambda c: c.nodes["a"]["spec"].update(taints=[{"key": "x", "effect": "NoSchedule"}])),
        ("preemption-no-node", lambda c: c.nodes["a"]["spec"].update(
            taints=[{"key": RESERVED, "value": "gpu-training", "effect": "NoSchedule"}])),
        # It can't be told.
        ("unjudged-affinity", on("high", affinity={"podAffinity": REQUIRED})),
        ("unjudged-affinity", on("high", affinity={"podAntiAffinity": REQUIRED})),
        ("unjudged-spread", on("high", topologySpreadConstraints=[{"topologyKey": "zone", "maxSkew": 1}])),
        ("unjudged-inline-volume", on("high", volumes=[{"name": "data", "awsElasticBlockStore": {"volumeID": "x"}}])),
        ("unjudged-request", claimed(allocationMode="All")),
        ("unjudged-request", claimed(capacity={"requests": {"memory": "1Gi"}})),
        ("unjudged-request", claimed(adminAccess=True)),
        ("unjudged-request", lambda c: c.claims["team-alpha/high-gpu"]["spec"]["devices"].update(
            constraints=[{"matchAttribute": "numa"}])),
        ("unjudged-selector", claimed(selectors=[{"cel": {"expression": "device.capacity['x'].y.compareTo(z) > 0"}}])),
    ],
)  # fmt: skip
def test_nobody_is_evicted(why: str, change: Change) -> None:
    cluster = full()
    assert isinstance(cluster.decide("high"), EvictionPlan), "else this test tells nothing"
    change(cluster)
    told = cluster.decide("high")
    assert isinstance(told, Phrase), told
    what = told.get("what")
    assert (what.id if isinstance(what, Phrase) else told.id) == why
    assert sentence(told)


@pytest.mark.parametrize(
    "change",
    [
        on("low", affinity={"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
            {"labelSelector": {"matchLabels": {"app": "db"}}, "topologyKey": "zone"}]}}),
        on("low", affinity={"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{}]}}),
        on("high", topologySpreadConstraints=[{"topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}]),
        on("high", volumes=[{"name": "tmp", "emptyDir": {}}]),
        on("high", tolerations=[{"key": RESERVED, "value": "gpu-training", "effect": "NoSchedule"}]),
    ],
)  # fmt: skip
def test_these_forbid_nothing(change: Change) -> None:
    cluster = full()
    change(cluster)
    assert isinstance(cluster.decide("high"), EvictionPlan)


def reason(cluster: DraCluster, gang: str = "high") -> str:
    told = cluster.decide(gang)
    assert isinstance(told, Phrase), told
    return told.id


def test_the_scheduler_makes_room_where_only_cpu_is_missing() -> None:
    cluster = full()
    cluster.node("b", cpu="1")
    cluster.running("cpu-hog", "b", gpus=0)
    assert reason(cluster) == "preemption-by-scheduler"


def test_the_scheduler_makes_room_where_a_device_plugin_has_the_gpus() -> None:
    """It goes by node: there it evicts as ever, and two evictors would act for one pod."""
    cluster = full()
    cluster.node("b", gpus=0, plugged=1)
    lower = cluster.running("other", "b", gpus=0)
    lower["spec"]["containers"][0]["resources"]["requests"]["nvidia.com/gpu"] = "1"
    cluster.waiting("high", by="resource")
    assert reason(cluster) == "preemption-by-scheduler"
    lower["spec"].update(priorityClassName="gpu-training", priority=1000)
    plan = cluster.decide("high")
    assert isinstance(plan, EvictionPlan), "the device plugin's GPU is held by an equal"
    assert plan.nodes == ("a",)


def test_free_partitions_are_not_counted() -> None:
    """Whether a partition that nobody holds can be had, the counters of its GPU tell, and these are not read."""
    cluster = full()
    cluster.slices[0]["spec"]["devices"].append({"name": "part", "consumesCounters": [{"counterSet": "gpu-0"}]})
    assert isinstance(cluster.decide("high"), EvictionPlan)


def test_cpu_that_an_equal_holds() -> None:
    cluster = full()
    cluster.running("equal", "a", "gpu-training", gpus=0)
    cluster.pods["equal"]["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "64"
    assert reason(cluster) == "preemption-nobody-lower"


def test_a_host_port_that_an_equal_has() -> None:
    cluster = full()
    port = [{"containerPort": 80, "hostPort": 80}]
    cluster.running("equal", "a", "gpu-training", gpus=0)["spec"]["containers"][0]["ports"] = port
    cluster.pods["high"]["spec"]["containers"][0]["ports"] = port
    assert reason(cluster) == "preemption-nobody-lower"


def test_a_node_that_is_reserved_for_another_pod() -> None:
    cluster = full()
    cluster.reserve(Reservation("x", "x", (), "gpu-training", ("a",), 0, 0))
    assert reason(cluster) == "preemption-no-node"


def reserved_with_victim(cluster: DraCluster, gpus: int) -> None:
    """Node b has two devices, which a pod holds that was evicted for a pod of so many."""
    if "b" not in cluster.nodes:
        cluster.node("b", gpus=2)
    cluster.running("going", "b", gpus=2)
    cluster.ending("going")
    cluster.waiting("first", gpus=gpus)
    made = Reservation(
        "first", "team-alpha/first", ("first",), "gpu-training", ("b",), NOW, NOW + 90, {"going": NOW + 80}
    )
    cluster.reserve(made)


def test_what_another_preemptor_leaves_of_its_node() -> None:
    """kube-scheduler counts so by nominated nodes: else one more pod would go than there."""
    cluster = full()
    reserved_with_victim(cluster, 1)
    plan = cluster.decide("high")
    assert isinstance(plan, EvictionPlan), "it shares the node, which stays reserved until it has its device, too"
    assert (plan.nodes, plan.victims) == (("b",), ())
    cluster.pods["high"]["spec"].update(priorityClassName="gpu-serving", priority=800)
    lower = cluster.decide("high")
    assert isinstance(lower, EvictionPlan), "so does one of a lower tier"
    assert (lower.nodes, lower.victims) == (("b",), ())


def test_another_preemptor_that_needs_all_of_its_node() -> None:
    cluster = full()
    reserved_with_victim(cluster, 2)
    plan = cluster.decide("high")
    assert isinstance(plan, EvictionPlan)
    assert plan.nodes == ("a",)


def test_another_preemptor_is_waited_for_where_a_higher_tier_would_go_instead() -> None:
    """On the reserved node a pod of gpu-interactive is left, on the other one a pod of gpu-batch."""
    cluster = full()
    cluster.node("b", gpus=3)
    reserved_with_victim(cluster, 2)
    cluster.running("lowest", "b", "gpu-interactive")
    cluster.pods["high"]["spec"].update(priorityClassName="gpu-serving", priority=800)
    assert reason(cluster) == "preemption-after-another"
    cluster.pods["lowest"]["spec"].update(priorityClassName="gpu-batch", priority=400)
    plan = cluster.decide("high")
    assert isinstance(plan, EvictionPlan), "nothing is gained by waiting"
    assert plan.nodes == ("a",)


def test_a_gang_gets_all_of_its_nodes_or_none() -> None:
    cluster = full()
    cluster.node("b")
    cluster.running("equal", "b", "gpu-training")
    cluster.waiting("second")
    cluster.group("gang", "high", "second", least=2)
    assert reason(cluster, "team-alpha/gang") == "preemption-nobody-lower"


def test_a_gang_waits_for_its_pods() -> None:
    cluster = full()
    cluster.group("gang", "high", least=2)
    assert reason(cluster, "team-alpha/gang") == "preemptor-incomplete"


def test_a_topology_of_a_group_is_not_judged() -> None:
    cluster = full()
    cluster.group("gang", "high", schedulingConstraints={"topology": [{"key": "rack"}]})
    assert reason(cluster, "team-alpha/gang") == "preemption-not-judged"


def test_a_group_that_goes_whole_stays_whole_where_one_pod_may_not_go() -> None:
    cluster = full()
    cluster.node("b")
    cluster.running("equal", "b", "gpu-training")
    cluster.group("workers", "low", "equal", whole=True)
    assert reason(cluster) == "preemption-nobody-lower"


def test_a_claim_that_two_pods_of_a_gang_share() -> None:
    cluster = full()
    second = cluster.waiting("second")
    for pod in (cluster.pods["high"], second):
        pod["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimName": "high-gpu"}]
    cluster.group("gang", "high", "second", least=2)
    assert reason(cluster, "team-alpha/gang") == "preemptor-shares-claim"


def apart(key: str, **term: object) -> Tree:
    term = {"labelSelector": {}, "topologyKey": key, **term}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


@pytest.mark.parametrize(
    ("affinity", "kept_off"),
    [
        (apart("kubernetes.io/hostname"), {"a"}),
        (apart("zone"), {"a", "b"}),
        (apart("no-node-has-it"), set()),
        (apart("zone", namespaces=["other"]), set()),
        (apart("zone", namespaceSelector={"matchLabels": {"team": "x"}}), {"a", "b"}),
        (apart("zone", labelSelector={"matchLabels": {"app": "db"}}), set()),
    ],
)
def test_a_pod_that_keeps_others_off_does_so_in_its_own_topology_alone(affinity: Tree, kept_off: set[str]) -> None:
    """Whoever may create a pod could keep all preemptors of the cluster waiting otherwise."""
    cluster = DraCluster()
    for name, zone in (("a", "1"), ("b", "1"), ("c", "2")):
        cluster.node(name)
        cluster.nodes[name]["metadata"]["labels"]["zone"] = zone
        cluster.running(f"low-{name}", name)
    cluster.pods["low-a"]["spec"]["affinity"] = affinity
    cluster.waiting("high")
    for name in ("a", "b", "c"):
        cluster.pods["high"]["spec"]["nodeSelector"] = {"kubernetes.io/hostname": name}
        assert isinstance(cluster.decide("high"), Phrase) == (name in kept_off), name
