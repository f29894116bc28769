"""The waits of pods for their node, and for those that were evicted for them: each is counted once."""

from decimal import Decimal

import pytest

from tests.builders.counted_ledger import CountedLedger
from webhook.controllers.placements import Placements
from webhook.controllers.pods_on_nodes import ObservedPod, PodsOnNodes
from webhook.ledger.protocol import Holding
from webhook.policy.checkpoint.hook_kinds import file_handler, kind_seen, signal_handler
from webhook.policy.checkpoint.work_lost import Outcome
from webhook.policy.quota.charges import Charge
from webhook.report.gpus_now import WaitingPod
from webhook.report.latest import PodShown, Preemption, preemption_of

EIGHT = Holding("team-alpha", Charge(Decimal(8), "gpu-training", None))


def waiting(since: str = "2026-11-23T09:00:00Z") -> ObservedPod:
    why = "0/3 nodes are available: 3 Insufficient nvidia.com/gpu."
    return ObservedPod("team-alpha", "llm-0", holding=EIGHT, waits=WaitingPod(EIGHT, "Job/llm", since, why))


def on_node(bound: str = "2026-11-23T09:12:30Z") -> ObservedPod:
    return ObservedPod("team-alpha", "llm-0", holding=EIGHT, node="gpu-node-7", bound=bound)


class Leader:
    """One that follows pods in its term."""

    def __init__(self) -> None:
        self.waited: list[tuple[float, str]] = []
        self.freed: list[tuple[float, str, str]] = []
        placements = Placements(lambda *change: self.waited.append(change), lambda *change: self.freed.append(change))
        self.evicted = placements.note_eviction
        ledger = CountedLedger(lambda: 0.0, lambda _: "alpha")
        self.pods = PodsOnNodes(ledger, lambda _: None, placements.note_bound)


@pytest.fixture
def leader() -> Leader:
    return Leader()


def test_a_pod_waits_from_its_creation_until_it_is_bound(leader: Leader) -> None:
    leader.pods.pods_listed({})
    leader.pods.pod_changed("llm-0", waiting())
    leader.pods.pod_changed("llm-0", waiting())
    assert leader.waited == []
    leader.pods.pod_changed("llm-0", on_node())
    leader.pods.pod_changed("llm-0", on_node())
    assert leader.waited == [(750.0, "gpu-training")], "its status changes later, its wait is over"


def test_who_leads_next_counts_those_it_sees_wait_and_nobody_again(leader: Leader) -> None:
    leader.pods.pods_listed({"counted-before": on_node(), "waits": waiting()})
    leader.pods.pod_changed("counted-before", on_node())
    leader.pods.pod_changed("waits", on_node("2026-11-23T10:00:00Z"))
    assert leader.waited == [(3600.0, "gpu-training")]


def test_a_pod_that_was_bound_while_the_watch_was_down_is_found_by_the_next_list(leader: Leader) -> None:
    leader.pods.pods_listed({"waits": waiting(), "ends": waiting()})
    leader.pods.pods_listed({"waits": on_node()})
    leader.pods.pods_listed({"waits": on_node()})
    assert leader.waited == [(750.0, "gpu-training")]


def test_a_pod_that_never_got_a_node_has_no_wait_that_ended(leader: Leader) -> None:
    leader.pods.pod_changed("llm-0", waiting())
    leader.pods.pod_changed("llm-0", None)
    assert leader.waited == []


def test_a_time_that_is_none_is_not_counted_and_a_clock_that_is_ahead_counts_as_no_wait(leader: Leader) -> None:
    for since, bound in (("", "2026-11-23T09:00:00Z"), ("2026-11-23T09:00:00Z", ""), ("2026-11-23T09:00:00Z", "soon")):
        leader.pods.pod_changed("odd", waiting(since))
        leader.pods.pod_changed("odd", on_node(bound))
    assert leader.waited == []
    leader.pods.pod_changed("odd", waiting("2026-11-23T09:12:31Z"))
    leader.pods.pod_changed("odd", on_node())
    assert leader.waited == [(0.0, "gpu-training")]


def eviction(name: str, hook: str, at: str = "2026-11-23T09:11:45.250000Z", by: str = "llm-0") -> Preemption:
    victim = PodShown("team-beta", name, name, "gpu-batch", "beta", "4", hook)
    preemptor = PodShown("team-alpha", by, by, "gpu-training", "alpha", "8")
    return preemption_of(at, "gpu-node-7", victim, preemptor, Outcome("saved", 12), 40.0, None)


def test_an_eviction_is_over_when_the_pod_that_it_was_for_has_its_node(leader: Leader) -> None:
    """Two pods go; of one it is known before the other pod has its node, of the other after."""
    leader.pods.pod_changed("llm-0", waiting())
    leader.evicted(eviction("sweep-1", "file"))
    assert leader.freed == [], "its place is not taken yet"
    leader.pods.pod_changed("llm-0", on_node())
    leader.evicted(eviction("sweep-2", "none"))
    assert leader.freed == [(44.75, "gpu-training", "file"), (44.75, "gpu-training", "none")]
    leader.pods.pod_changed("llm-0", on_node())
    assert len(leader.freed) == 2, "told of once"


def test_what_took_the_place_may_never_be_seen(leader: Leader) -> None:
    leader.evicted(eviction("sweep-1", "file", by="deleted-meanwhile"))
    leader.pods.pod_changed("llm-0", waiting())
    leader.pods.pod_changed("llm-0", on_node())
    assert leader.freed == []


HANDLERS = [
    ([], "none"),
    ([file_handler("/run/gpu-tiers", 120)], "file"),
    ([signal_handler("USR1", "/run/gpu-tiers/done", 120)], "signal"),
    ([{"httpGet": {"path": "/checkpoint", "port": 8080}}], "http"),
    ([{"sleep": {"seconds": 15}}], "sleep"),
    ([{"exec": {"command": ["save"]}}], "exec"),
    ([{"tcpSocket": {"port": 8080}}], "none"),
]


@pytest.mark.parametrize(("handlers", "kind"), HANDLERS)
def test_the_kind_of_a_hook_is_seen_of_the_pod(handlers: list[dict[str, object]], kind: str) -> None:
    assert kind_seen(handlers, listens=False) == kind
    assert kind_seen(handlers, listens=True) == {"file": "listen"}.get(kind, kind)
