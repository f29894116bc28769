"""What a tenant's account says without one pod, so that the pod can be judged that comes in its place."""

from decimal import Decimal
from typing import Any

import pytest

from webhook.cli.explain.next_pod import account_without, evicted_first
from webhook.ledger.account import Account, Holder
from webhook.policy.quota.charges import Charge


def charge(gpus: int, tier: str = "gpu-training", flavor: str | None = None, **shared: Decimal) -> Charge:
    return Charge(Decimal(gpus), tier, flavor, shared)


H100, ANY = charge(4, flavor="h100"), charge(6)
BATCH = charge(2, "gpu-batch")


@pytest.mark.parametrize(
    ("pod", "left"),
    [
        (charge(2, flavor="h100"), (charge(2, flavor="h100"), ANY, BATCH)),
        (charge(2), (H100, charge(4), BATCH)),
        (charge(2, flavor="a100"), (H100, charge(4), BATCH)),
        (charge(3, data=Decimal(1)), (H100, charge(4), BATCH)),
        (charge(5, "gpu-batch"), (H100, ANY, charge(0, "gpu-batch"))),
        (charge(2, "gpu-serving"), (H100, ANY, BATCH)),
    ],
    ids=["flavor", "no flavor", "flavor that is not known", "shares a claim", "not counted yet", "no such tier"],
)
def test_it_is_taken_out_of_what_its_tier_holds(pod: Charge, left: tuple[Charge, ...]) -> None:
    assert account_without(Account(held=(H100, ANY, BATCH)), "a", pod).held == left


def test_one_that_is_listed_by_itself_is_not_taken_out_twice() -> None:
    a, b = (Holder(uid=uid, namespace="alpha", charges=(charge(2),)) for uid in "ab")
    found = account_without(Account(held=(ANY,), pods=(a, b), reservations=(a,)), "a", charge(2))
    assert (found.held, found.pods, found.reservations) == ((ANY,), (b,), ())


def test_the_lowest_of_those_that_run_is_evicted_first() -> None:
    def pod(name: str, priority: int, phase: str = "Running") -> dict[str, Any]:
        return {"metadata": {"name": name}, "spec": {"priority": priority}, "status": {"phase": phase}}

    found = evicted_first([pod("ended", 0, "Succeeded"), pod("training", 1000), pod("demoted", 400)])
    assert found is not None
    assert found["metadata"]["name"] == "demoted"
    assert evicted_first([pod("ended", 0, "Failed")]) is None
