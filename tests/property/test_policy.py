"""What must hold of every pod, every quantity and every run of bookings, whatever they are."""

import asyncio
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.builders import (
    GPU,
    PodBuilder,
    WorkloadBuilder,
    a_job,
    a_pod,
    a_policy,
    a_pytorchjob,
    a_tenant,
    a_tier_request,
    a_workload,
)
from webhook.ledger.entry import Entry
from webhook.ledger.memory import RESERVATION_SECONDS, MemoryLedger
from webhook.objects.pods import Pod
from webhook.objects.quantities import quantity, written
from webhook.objects.refusal import Refused
from webhook.objects.view import view
from webhook.policy.assignment.reinvocation import ASSIGNED_BY, settle
from webhook.policy.assignment.request import Assignment
from webhook.policy.checkpoint.hook_plan import decide
from webhook.policy.quota.charges import Charge
from webhook.policy.quota.demand import demand_of
from webhook.policy.values.tiers import class_in_force
from webhook.policy.workloads.workload_types import WorkloadType

unhurried = settings(deadline=None)
"""A shared machine may take its time over one example."""
SUFFIXES = {
    "": Fraction(1),
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 1000),
    **{letter: Fraction(1000) ** power for power, letter in enumerate("kMGTPE", start=1)},
    **{f"{letter}i": Fraction(1024) ** power for power, letter in enumerate("KMGTPE", start=1)},
}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=12,
)


def refusal_of(call: Callable[[], object]) -> str | None:
    """The sentence with which a call refuses; any other exception is a bug."""
    try:
        call()
    except Refused as refused:
        return refused.sentence
    return None


@unhurried
@given(
    sign=st.sampled_from(["", "+", "-"]),
    whole=st.integers(0, 10**29),
    part=st.text("0123456789", max_size=30),
    suffix=st.sampled_from(sorted(SUFFIXES)),
)
def test_a_quantity_is_exact(sign: str, whole: int, part: str, suffix: str) -> None:
    text = f"{sign}{whole}.{part}{suffix}"
    number = Fraction(int(f"{whole}{part}"), 10 ** len(part)) * SUFFIXES[suffix]
    assert Fraction(quantity(text, "x")) == (-number if sign == "-" else number)


@unhurried
@given(whole=st.integers(0, 10**29), exponent=st.integers(-99, 99), letter=st.sampled_from("eE"))
def test_a_quantity_with_an_exponent_is_exact(whole: int, exponent: int, letter: str) -> None:
    assert Fraction(quantity(f"{whole}{letter}{exponent}", "x")) == Fraction(whole) * Fraction(10) ** exponent


@unhurried
@given(JSON | st.integers(-(10**400), 10**400) | st.from_regex(r"[-+0-9.eEkKMGTPimnu]{0,12}"))
def test_a_quantity_is_a_number_or_refused(value: object) -> None:
    sentence = refusal_of(lambda: quantity(value, "field"))
    if sentence is None:
        assert quantity(value, "field").is_finite()
    else:
        assert sentence.startswith("field: ")
        assert len(sentence) < 160


@unhurried
@given(st.decimals(0, 10**6, places=6))
def test_a_number_reads_back_as_it_was_written(number: Decimal) -> None:
    assert quantity(written(number), "x") == number


RESOURCES = st.sampled_from([GPU, "nvidia.com/mig-3g.40gb", "deviceclass.resource.kubernetes.io/gpu.nvidia.com", "cpu"])
CONTAINERS = st.lists(st.tuples(st.sampled_from(["app", "init", "sidecar"]), RESOURCES, st.integers(0, 64)), max_size=6)


def built(containers: list[tuple[str, str, int]]) -> PodBuilder:
    pod = a_pod()
    for role, resource, gpus in containers:
        match role:
            case "app":
                pod = pod.asking(gpus, resource=resource)
            case "init":
                pod = pod.with_init(gpus, resource=resource)
            case "sidecar":
                pod = pod.with_init(gpus, resource=resource, restartPolicy="Always")
    return pod


@unhurried
@given(CONTAINERS, st.sampled_from(["app", "init", "sidecar"]), RESOURCES, st.integers(0, 64))
def test_a_further_container_never_lowers_a_pod_s_demand(
    containers: list[tuple[str, str, int]], role: str, resource: str, gpus: int
) -> None:
    policy = a_policy()
    before = demand_of(built(containers).view(), (), policy)
    after = demand_of(built([*containers, (role, resource, gpus)]).view(), (), policy)
    weight = policy.weights.get(resource, Decimal(0))
    assert 0 <= before <= after <= before + gpus * weight


@unhurried
@given(CONTAINERS)
def test_a_demand_lies_between_what_runs_together_and_the_sum_of_all(containers: list[tuple[str, str, int]]) -> None:
    policy = a_policy()
    weighed = [(role, policy.weights.get(resource, Decimal(0)) * gpus) for role, resource, gpus in containers]
    running = sum((gpus for role, gpus in weighed if role != "init"), Decimal(0))
    assert running <= demand_of(built(containers).view(), (), policy) <= sum((gpus for _, gpus in weighed), Decimal(0))


@unhurried
@given(JSON)
def test_any_json_is_a_pod_or_refused(tree: object) -> None:
    for shape in (
        tree,
        {"metadata": tree},
        {"spec": tree},
        {"spec": {"containers": tree}},
        {"spec": {"affinity": tree}},
    ):
        assert "\n" not in (refusal_of(lambda shape=shape: judged(shape)) or "")


def judged(tree: object) -> None:
    policy, pod = a_policy(), view(tree, Pod)
    assert demand_of(pod, (), policy) >= 0
    decide(pod, WorkloadType.TRAINING, (), policy)


TIER_NAMES = ["gpu-training", "gpu-serving", "gpu-batch", "gpu-interactive"]
OWNERS: list[WorkloadBuilder | None] = [
    None,
    a_job(name="night"),
    a_pytorchjob(name="train"),
    a_workload("kubeflow.org/v1", "Notebook", "workbench"),
    a_job(name="labelled").of_tier("gpu-batch"),
]
CEILINGS: list[dict[str, object] | None] = [
    None,
    {},
    {"maxTier": "gpu-serving"},
    {"allowedTiers": ["gpu-training", "gpu-interactive"], "onExceed": "Demote"},
    {"defaultTier": "gpu-batch", "onExceed": "Demote"},
]
ANNOTATIONS = (
    st.none()
    | st.text(max_size=40)
    | st.sampled_from(
        [
            *(
                f"{step}: the policy's default; demoted from {tier}"
                for step in ("label", "class")
                for tier in TIER_NAMES
            ),
            "policy-default: the policy's default",
            "workload-type: training, by its kind, PyTorchJob/train; demoted from gpu-training",
        ]
    )
)


@unhurried
@given(
    label=st.sampled_from([None, *TIER_NAMES, "gold"]),
    class_name=st.sampled_from([None, *TIER_NAMES, "house", "system-node-critical"]),
    owner=st.sampled_from(OWNERS),
    ceiling=st.sampled_from(CEILINGS),
    annotation=ANNOTATIONS,
    unmanaged=st.sampled_from(["Keep", "Replace", "Deny"]),
    adoption=st.booleans(),
)
def test_settling_again_after_our_own_marks_settles_the_same(
    label: str | None,
    class_name: str | None,
    owner: WorkloadBuilder | None,
    ceiling: dict[str, object] | None,
    annotation: str | None,
    unmanaged: str,
    adoption: bool,
) -> None:
    policy = a_policy(unmanagedClasses=unmanaged, adoption=adoption)
    owners, tenant = (owner,) if owner else (), None if ceiling is None else a_tenant(**ceiling)

    def settled(pod: PodBuilder) -> Assignment:
        return settle(a_tier_request(pod, *owners, policy=policy, tenant=tenant))

    pod = a_pod().asking()
    pod = pod if label is None else pod.of_tier(label)
    pod = pod if class_name is None else pod.of_class(class_name)
    pod = pod if annotation is None else pod.annotated({ASSIGNED_BY: annotation})
    try:
        first = settled(pod)
    except Refused:
        return
    marked = pod.annotated({ASSIGNED_BY: str(first)})
    if first.tier is not None:
        marked = marked.of_tier(first.tier.name).of_class(class_in_force(first.tier, adoption=adoption))
    second = settled(marked)
    assert (second.tier, str(second)) == (first.tier, str(first))
    if first.tier is not None and tenant is not None:
        assert tenant.view().may_use(first.tier, policy.tiers)


class Book:
    """A ledger of one tenant beside a plain account of what each pod holds and until when."""

    def __init__(self) -> None:
        self.tenant = a_tenant().allowing("8").allowing("4", tier="gpu-training").view()
        self.now = 0.0
        self.held: dict[str, tuple[Charge, float]] = {}
        self.ledger = MemoryLedger(lambda: self.now, lambda _: "alpha")

    def book(self, uid: str, charge: Charge) -> None:
        known = uid in self.held
        short = asyncio.run(self.ledger.book(self.tenant, uid, "team-alpha", charge))
        if short is None and not known:
            usage = self.ledger.usage(self.tenant)
            assert all(usage[row] <= row.hard for row in charge.rows(self.tenant)), "no booking overdraws a row"
            self.held[uid] = (charge, self.now + RESERVATION_SECONDS)

    def saw(self, uid: str, charge: Charge) -> None:
        self.ledger.saw(uid, Entry("team-alpha", charge, None, seen=True))
        self.held[uid] = (charge, float("inf"))

    def ended(self, uid: str, _: Charge) -> None:
        self.ledger.ended(uid)
        self.held.pop(uid, None)

    def wait(self, _: str, __: Charge) -> None:
        self.now += RESERVATION_SECONDS / 2
        self.held = {uid: entry for uid, entry in self.held.items() if entry[1] > self.now}
        self.ledger.usage(self.tenant)

    def relist(self, _: str, __: Charge) -> None:
        """The pods that were seen are gone; bookings whose pods are still to come stay."""
        self.ledger.replace({})
        self.held = {uid: entry for uid, entry in self.held.items() if entry[1] != float("inf")}

    def balance(self) -> None:
        for row, used in self.ledger.usage(self.tenant).items():
            assert used == sum(
                (each.gpus for each, _ in self.held.values() if row in each.rows(self.tenant)), Decimal(0)
            )


MOVES = st.lists(
    st.tuples(
        st.sampled_from([Book.book, Book.book, Book.saw, Book.ended, Book.wait, Book.relist]),
        st.integers(0, 9),
        st.sampled_from([Decimal("0.125"), Decimal(1), Decimal(3), Decimal(8)]),
        st.sampled_from(["gpu-training", "gpu-batch", None]),
    ),
    max_size=40,
)


@unhurried
@given(MOVES)
def test_no_run_of_bookings_overdraws_a_row(
    moves: list[tuple[Callable[[Book, str, Charge], None], int, Decimal, str | None]],
) -> None:
    """A pod that is there is charged whether or not there was room: then nothing more is booked."""
    book = Book()
    for move, pod, gpus, tier in moves:
        move(book, f"uid-{pod}", Charge(gpus, tier))
        book.balance()
