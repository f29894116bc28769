"""What a leader notes of workloads that exist: which of them ask for more than they did."""

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import msgspec

from tests.builders import a_policy
from webhook.controllers.observed_world import ObservedWorkloads
from webhook.policy.quota.charges import Charge


class InForce:
    """A policy in force; `reload` tells that there is another one."""

    def __init__(self) -> None:
        self.current = a_policy
        self.reload: Callable[[], None] = lambda: None

    def subscribe(self, listener: Callable[[], None]) -> None:
        self.reload = listener


async def test_a_gang_has_grown_that_asks_for_more_and_none_that_another_policy_weighs_heavier() -> None:
    """Else a new weight would put all gangs that wait behind each pod that waits alone."""
    in_force, weighs = InForce(), [Decimal(4)]
    job = msgspec.Raw(msgspec.json.encode({"metadata": {"name": "a", "namespace": "n", "uid": "a", "generation": 1}}))

    async def charges(*_: object) -> tuple[Charge, ...]:
        return (Charge(weighs[0], "gpu-batch"),)

    workloads = ObservedWorkloads(Any, in_force, charges)  # type: ignore[arg-type]
    row = next(each for each in a_policy().kinds.rows if each.kind == "Job")

    async def grown() -> bool:
        found = await workloads._declared(row, job)
        return found is not None and bool(found.grown)

    assert not await grown()
    weighs[0] = Decimal(8)
    in_force.reload()
    assert not await grown()
    weighs[0] = Decimal(9)
    assert await grown()
