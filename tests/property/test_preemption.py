"""Evictions for devices of DRA, against an oracle that tries every set of victims and every placement.

The oracle knows pods, devices, CPUs and volumes as plain numbers, and nothing of how the decision is found.
"""

from collections.abc import Iterable, Iterator
from itertools import combinations, permutations, product

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from tests.builders.claims import DEVICE_CLASS, a_device, a_slice
from tests.builders.dra_cluster import TIERS, DraCluster
from tests.builders.storage import ZONE, mount, of_zone
from webhook.objects.refusal import Phrase
from webhook.policy.preemption.preemptor import EvictionPlan

MODELS = ("A100", "H100")
RANKS = ("gpu-interactive", "gpu-batch", "gpu-serving", "gpu-training")
CPUS = 6
ZONES, MADE = ("east", "west"), "made where it starts"


class Runs(msgspec.Struct, frozen=True):
    """A pod on a node: its tier, its CPUs, the numbers of its devices there, and how many volumes it uses."""

    name: str
    node: int
    tier: str
    cpu: int
    devices: tuple[int, ...]
    ends: bool = False
    volumes: int = 0


class Waits(msgspec.Struct, frozen=True):
    """A pod of the preemptor: how many devices of each model it wants, None for any.

    Its volume is in a zone, or is made where the pod starts; None without one.
    """

    cpu: int
    wants: tuple[tuple[str | None, int], ...]
    volume: str | None = None


class Case(msgspec.Struct, frozen=True):
    """Models of the devices by node, its zone and how many volumes it attaches, the pods, and the gang that waits."""

    nodes: tuple[tuple[str, ...], ...]
    zones: tuple[str, ...]
    limits: tuple[int | None, ...]
    running: tuple[Runs, ...]
    tier: str
    waiting: tuple[Waits, ...]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    models = st.lists(st.sampled_from(MODELS), min_size=1, max_size=4)
    nodes = tuple(tuple(each) for each in draw(st.lists(models, min_size=1, max_size=3)))
    running: list[Runs] = []
    for node, there in enumerate(nodes):
        # Mostly all devices are held, for else nobody has to go.
        cpu, left = CPUS, list(range(len(there) - (draw(st.integers(0, 3)) == 3)))
        while left or draw(st.integers(0, 3)) == 3:
            asks, count = draw(st.integers(0, min(2, cpu))), draw(st.integers(min(1, len(left)), len(left)))
            cpu, taken, left = cpu - asks, tuple(left[:count]), left[count:]
            tier, ends = draw(st.sampled_from(RANKS)), draw(st.integers(0, 9)) == 9
            volumes = draw(st.sampled_from((0, 0, 1, 2)))
            running.append(Runs(f"pod-{node}-{len(running)}", node, tier, asks, taken, ends, volumes))
    want = st.tuples(st.sampled_from((None, None, *MODELS)), st.sampled_from((1, 1, 1, 2, 3)))
    wants = st.lists(want, min_size=1, max_size=2, unique_by=lambda each: each[0]).map(tuple)
    volume = st.sampled_from((None, None, MADE, *ZONES))
    waiting = tuple(draw(st.lists(st.builds(Waits, st.integers(0, 3), wants, volume), min_size=1, max_size=2)))
    zones = tuple(draw(st.sampled_from(ZONES)) for _ in nodes)
    limits = tuple(draw(st.sampled_from((None, None, 1, 2, 4))) for _ in nodes)
    return Case(nodes, zones, limits, tuple(running), draw(st.sampled_from(RANKS[2:])), waiting)


def built(case: Case) -> DraCluster:
    cluster = DraCluster()
    cluster.storage.storage_class()
    for number, models in enumerate(case.nodes):
        cluster.node(f"n{number}", gpus=0, cpu=str(CPUS))
        devices = [a_device(f"gpu-{each}", model=model) for each, model in enumerate(models)]
        cluster.slices.append(a_slice(*devices, node=f"n{number}").json())
        cluster.nodes[f"n{number}"]["metadata"]["labels"][ZONE] = case.zones[number]
        cluster.storage.attaches(f"n{number}", case.limits[number])
    for pod in case.running:
        made = cluster.running(pod.name, f"n{pod.node}", pod.tier, gpus=len(pod.devices))
        made["spec"]["containers"][0]["resources"]["requests"]["cpu"] = str(pod.cpu)
        for volume in range(pod.volumes):
            cluster.storage.bound(f"{pod.name}-{volume}")
            mount(made, f"{pod.name}-{volume}")
        if pod.ends:
            cluster.ending(pod.name)
    for number, pod in enumerate(case.waiting):
        made = cluster.waiting(f"high-{number}", case.tier)
        made["spec"]["containers"][0]["resources"]["requests"]["cpu"] = str(pod.cpu)
        if pod.volume is not None:
            mount(made, f"high-{number}")
            if pod.volume == MADE:
                cluster.storage.claim(f"high-{number}")
            else:
                cluster.storage.bound(f"high-{number}", nodeAffinity=of_zone(pod.volume))
        cluster.claims[f"team-alpha/high-{number}-gpu"]["spec"]["devices"]["requests"] = [
            {"name": f"r{each}", "exactly": exactly(model, count)} for each, (model, count) in enumerate(pod.wants)
        ]
    cluster.group("gang", *(f"high-{each}" for each in range(len(case.waiting))), least=len(case.waiting))
    return cluster


def exactly(model: str | None, count: int) -> dict[str, object]:
    expression = f"device.attributes['{DEVICE_CLASS}'].model == '{model}'"
    selectors = [{"cel": {"expression": expression}}] if model else []
    return {"deviceClassName": DEVICE_CLASS, "count": count, "selectors": selectors}


def fits(case: Case, gone: Iterable[str]) -> bool:
    """Whether all pods of the gang have room somewhere once these pods are gone."""
    left = [pod for pod in case.running if pod.name not in set(gone)]
    for places in product(range(len(case.nodes)), repeat=len(case.waiting)):
        if all(_has_room(case, node, left, places) for node in range(len(case.nodes))):
            return True
    return False


def _has_room(case: Case, node: int, left: list[Runs], places: tuple[int, ...]) -> bool:
    there = [pod for pod in left if pod.node == node]
    mine = [each for each, place in zip(case.waiting, places, strict=True) if place == node]
    if sum(pod.cpu for pod in there) + sum(each.cpu for each in mine) > CPUS:
        return bool(not mine)
    if not all(each.volume in (None, MADE, case.zones[node]) for each in mine):
        return False
    # Volumes of pods that end are detached later.
    attached, limit = sum(pod.volumes for pod in case.running if pod.node == node), case.limits[node]
    more = sum(each.volume is not None for each in mine)
    if more and limit is not None and attached + more > limit:
        return False
    taken = {device for pod in there for device in pod.devices}
    free = [model for number, model in enumerate(case.nodes[node]) if number not in taken]
    slots = [model for each in mine for model, count in each.wants for _ in range(count)]
    if len(slots) > len(free):
        return False
    return any(
        all(want in (None, have) for want, have in zip(slots, some, strict=False))
        for some in set(permutations(free, len(slots)))
    )


def lower(case: Case) -> list[str]:
    return [pod.name for pod in case.running if TIERS[pod.tier] < TIERS[case.tier] and not pod.ends]


def subsets(names: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    return (each for size in range(len(names)) for each in combinations(names, size))


@given(cases())
def test_against_every_set_of_victims(case: Case) -> None:
    answer = built(case).decide("team-alpha/gang")
    ending = [pod.name for pod in case.running if pod.ends]
    if isinstance(answer, Phrase):
        assert (
            fits(case, ending) or len(case.waiting) > 1 or not fits(case, [*ending, *lower(case)]) or by_scheduler(case)
        ), answer
        return
    victims = tuple(each.name for each in answer.victims)
    assert set(victims) <= set(lower(case)), "an equal, a higher one, or one that ends"
    assert not fits(case, ending), "nobody had to go"
    assert fits(case, [*ending, *victims]), "the gang has no room after the eviction"
    assert victims
    on_nodes = {f"n{pod.node}" for pod in case.running if pod.name in victims}
    assert on_nodes <= set(answer.nodes)
    assert len(answer.nodes) <= len(case.waiting)
    if len(case.waiting) == 1:
        assert not any(fits(only(case, answer), [*ending, *fewer]) for fewer in subsets(victims)), "fewer would do"


def only(case: Case, plan: EvictionPlan) -> Case:
    """The case with devices on the planned nodes alone."""
    nodes = tuple(models if f"n{number}" in plan.nodes else () for number, models in enumerate(case.nodes))
    return msgspec.structs.replace(case, nodes=nodes)


def by_scheduler(case: Case) -> bool:
    """Whether the devices are free on some node, and only pods of lower priority keep the CPU."""
    without_devices = tuple(
        msgspec.structs.replace(pod, cpu=0) if TIERS[pod.tier] < TIERS[case.tier] else pod for pod in case.running
    )
    ending = [pod.name for pod in case.running if pod.ends]
    return fits(msgspec.structs.replace(case, running=without_devices), ending)
