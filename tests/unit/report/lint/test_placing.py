"""GPUs that nobody can use, and gangs that lose pods."""

from decimal import Decimal

from tests.unit.report.lint.asking import GIB, a_cluster, a_gpu_node, a_listed_pod, found
from webhook.objects.podgroups import PodGroup, PodGroupMetadata, PodGroupSpec
from webhook.report.lint.snapshot import Taken


def test_gpus_that_lie_idle_for_want_of_cpu() -> None:
    taken = {"n1": Taken(Decimal(5), Decimal(95), Decimal(100 * GIB))}
    assert found("gpus-without-room", a_cluster(nodes=(a_gpu_node(),), taken=taken)) == [
        "Node/n1: 3 of 8 GPUs free, with 1 of 96 CPU cores left"
    ]
    full = {"n1": Taken(Decimal(8), Decimal(95), Decimal(100 * GIB))}
    assert found("gpus-without-room", a_cluster(nodes=(a_gpu_node(),), taken=full)) == []
    assert found("gpus-without-room", a_cluster(nodes=(a_gpu_node(open=False),), taken=taken)) == [], "it is cordoned"
    assert found("gpus-without-room", a_cluster(nodes=(a_gpu_node(),))) == []


def test_gpus_that_are_free_in_pieces() -> None:
    nodes = (a_gpu_node(), a_gpu_node("n2"))
    taken = {name: Taken(gpus=Decimal(6)) for name in ("n1", "n2")}
    waiting = a_listed_pod("big", 4, node="", job="pretrain")
    assert found("gpus-in-pieces", a_cluster(nodes=nodes, taken=taken, pods=(waiting,))) == [
        "all nodes: 4 GPUs are free, at most 2 on a node; 1 pod of up to 4 wait: Job/pretrain in team-alpha"
    ]
    small = a_listed_pod("small", 2, node="")
    too_big, gated = a_listed_pod("huge", 5, node=""), a_listed_pod("gated", 4, node="", gated=True)
    of_another = a_listed_pod("pinned", 4, node="", flavor="h100")
    assert found("gpus-in-pieces", a_cluster(nodes=nodes, taken=taken, pods=(small, too_big, gated, of_another))) == []


def a_group(name: str, priority: int, *, whole: bool) -> PodGroup:
    spec = PodGroupSpec(priority=priority, disruption_mode={"all": {}} if whole else None)
    return PodGroup(metadata=PodGroupMetadata(namespace="team-alpha", name=name), spec=spec)


def test_a_gang_that_1_36_breaks() -> None:
    groups = (a_group("tune", 400, whole=True), a_group("web", 400, whole=False))
    plain, member = a_listed_pod("critical"), a_listed_pod("member", group="tune")
    pods = (plain, member, a_listed_pod("calm", preempts=False), a_listed_pod("low", priority=200))
    assert found("gang-broken-by-pods", a_cluster(version=(1, 36), pod_groups=groups, pods=pods)) == [
        "PodGroup/tune in team-alpha: 1 pod outside any PodGroup may evict it: Pod/critical in team-alpha"
    ]
    assert found("gang-broken-by-pods", a_cluster(version=(1, 37), pod_groups=groups, pods=pods)) == []


def test_a_group_without_a_priority_has_that_of_its_pods() -> None:
    group = (a_group("tune", 0, whole=True),)
    pods = (a_listed_pod("member", group="tune"), a_listed_pod("equal"), a_listed_pod("low", priority=400))
    assert found("gang-broken-by-pods", a_cluster(version=(1, 36), pod_groups=group, pods=pods)) == []
