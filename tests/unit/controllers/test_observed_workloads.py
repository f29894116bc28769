"""The leader notes which existing workloads ask for more than they did."""

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import msgspec

from tests.builders import a_policy
from webhook.controllers.observed_world import ObservedWorkloads
from webhook.ledger.leader.workload_view import WorkloadView
from webhook.policy.quota.charges import Charge, together


class Active:
    """an active policy; `reload` tells that there is another one."""

    def __init__(self) -> None:
        self.current = a_policy
        self.reload: Callable[[], None] = lambda: None

    def subscribe(self, listener: Callable[[], None]) -> None:
        self.reload = listener


def stored(**more: Any) -> msgspec.Raw:
    metadata = {"name": "a", "namespace": "n", "uid": "a", "generation": 1, **more.pop("metadata", {})}
    return msgspec.Raw(msgspec.json.encode({"metadata": metadata, **more}))


async def two(*_: object) -> tuple[Charge, ...]:
    return (Charge(Decimal(2), "gpu-batch"),)


async def test_a_workload_in_deletion_makes_no_pods_and_asks_for_nothing() -> None:
    workloads = ObservedWorkloads(Any, Active(), two)  # type: ignore[arg-type]
    row = next(each for each in a_policy().kinds.rows if each.kind == "Job")
    runs = await workloads._declared(row, stored())
    ends = await workloads._declared(row, stored(metadata={"deletionTimestamp": "2026-11-01T09:00:00Z"}))
    assert runs is not None
    assert ends is not None
    assert (together(runs.charges or ()), runs.stopped) == (2, False)
    assert (ends.charges, ends.stopped) == ((), True)


async def test_a_workload_that_a_list_shows_ended_is_known_to_have_ended() -> None:
    """The gated pods of an unknown workload would otherwise wait for ever, as those of one that is not seen yet."""
    workloads, view = ObservedWorkloads(Any, Active(), two), WorkloadView(lambda _: None)  # type: ignore[arg-type]
    row = next(each for each in a_policy().kinds.rows if each.kind == "Job")
    workloads._observer = view
    complete = {"conditions": [{"type": "Complete", "status": "True"}]}
    assert await workloads._declared(row, stored(status=complete)) is None
    view.observe_all("Job.batch", {})
    assert view.has_ended("a")
