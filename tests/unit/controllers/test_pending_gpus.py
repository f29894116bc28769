"""The GPUs of pods without a node: only what lasts is shown, once for each change, and nothing unknown."""

from decimal import Decimal

import pytest

from tests.builders import a_tenant
from webhook.controllers.gpu_seconds import PendingGpus
from webhook.controllers.pods_on_nodes import ObservedPod, PodsOnNodes
from webhook.ledger.leader.pod_view import PodView
from webhook.ledger.protocol import Gated, Holding
from webhook.policy.quota.charges import Charge
from webhook.policy.values.tenants import Tenant
from webhook.report.gpus_now import WaitingPod

Rows = dict[str, str]


class Story:
    """The pods of a leader, and what it says of tenant alpha."""

    def __init__(self, **spec: str) -> None:
        self.tenant: Tenant = a_tenant(**spec).allowing(6, tier="gpu-training").allowing(16).view()
        self.knows, self.changed = True, list[str]()
        self.pods = PodsOnNodes(PodView(lambda _: None), lambda _: None)
        self.pending = PendingGpus(self.pods.unplaced, self.pods.running, self, lambda: self.knows, self.changed.append)  # type: ignore[arg-type]

    def tenants(self) -> list[Tenant]:
        return [self.tenant]

    def tenant_name(self, namespace: str) -> str | None:
        return "alpha" if namespace == "lab" else None

    def pod(self, name: str, charge: Charge | None = None, node: str = "", gated: Gated | None = None) -> None:
        holding = Holding("lab", charge or Charge(Decimal(2), "gpu-training"), name=name, gated=gated)
        waits = None if node else WaitingPod(holding, f"Pod/{name}", "", "")
        self.pods.pod_changed(f"uid-{name}", ObservedPod("lab", name, holding=holding, node=node, waits=waits))

    def looked(self, times: int = 2) -> None:
        for _ in range(times):
            self.pending.look()

    def shown(self, before: dict[str, object] | None = None) -> tuple[int, str, Rows] | None:
        found = self.pending.status("alpha", before or {}).get("pending")
        return (found["pods"], found["gpus"], {each["row"]: each["gpus"] for each in found["rows"]}) if found else None


def test_pods_without_a_node_are_counted_on_each_row() -> None:
    story = Story()
    story.pod("a")
    story.pod("b", Charge(Decimal("0.5"), "gpu-batch"))
    story.pod("runs", node="n1")
    story.looked()
    assert story.shown() == (2, "2.5", {"gpu-training": "2", "total": "2.5"})
    assert [(row.label, gpus) for _, row, gpus in story.pending.rows()] == [
        ("gpu-training", 2),
        ("total", Decimal("2.5")),
    ]


def test_a_pod_that_is_being_bound_changes_nothing() -> None:
    story = Story()
    story.looked()
    story.changed.clear()
    for number in range(20):
        story.pod("a", node="" if number % 2 else "n1")
        story.looked(1)
    assert story.changed == []
    assert story.shown() is None, "a tenant that never had any is not told of none"


def test_a_number_that_stays_is_written_once() -> None:
    story = Story()
    story.pod("a")
    story.looked(10)
    assert story.changed == ["alpha"]
    story.pod("a", node="n1")
    story.looked(10)
    assert story.changed == ["alpha", "alpha"]
    assert story.shown({"pending": {}}) == (0, "0", {})


def test_pods_behind_our_gate_use_nothing() -> None:
    story = Story()
    story.pod("held", gated=Gated(1000, "", "7"))
    story.looked()
    assert story.shown() is None


def test_a_claim_counts_once_and_not_where_a_pod_on_a_node_holds_it() -> None:
    story, shared = Story(), Charge(Decimal(2), "gpu-training", shared={"pair": Decimal(2)})
    story.pod("a", shared)
    story.pod("b", shared)
    story.looked()
    assert story.shown() == (2, "2", {"gpu-training": "2", "total": "2"})
    story.pod("runs", shared, node="n1")
    story.looked()
    assert story.shown() == (2, "0", {})


@pytest.mark.parametrize("forget", [True, False])
def test_what_was_written_stays_while_nobody_knows_better(forget: bool) -> None:
    """Another leads, or this one has begun a term and has not looked twice."""
    story = Story()
    story.pod("a")
    story.looked()
    if forget:
        story.pending.begin()
    else:
        story.knows = False
        story.looked(1)
    assert story.shown({"pending": {"pods": 1}}) is None
    assert [*story.pending.rows()] == []


def test_a_tenant_that_is_charged_elsewhere_has_none() -> None:
    story = Story(quotaAuthority="Kueue")
    story.pod("a")
    story.looked()
    assert story.shown() is None
