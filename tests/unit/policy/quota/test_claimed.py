"""A pod that exists is charged no less than its claims asked for at admission, while they are away or smaller."""

from decimal import Decimal

import pytest

from tests.builders import a_claiming_pod, a_policy
from webhook.objects.pods import Pod
from webhook.objects.view import view
from webhook.policy.quota.charges import Charge, charge_of
from webhook.policy.quota.demand import CLAIMED
from webhook.policy.workloads.workload import Devices


def stored(claim: str | None, let_in: str, **spec: object) -> Pod:
    pod = a_claiming_pod(claim=claim).of_tier("gpu-training").annotated({CLAIMED: let_in}).json()
    return view({**pod, "spec": pod["spec"] | spec}, Pod)


def gpus(count: int, claim: str = "") -> tuple[Devices, ...]:
    return (Devices("gpu.nvidia.com", count, "gpu", "gpu", claim),) if count else ()


@pytest.mark.parametrize("node", ["", "gpu-0"], ids=["waits", "on a node"])
@pytest.mark.parametrize(
    ("there", "charged"), [(0, 4), (1, 4), (4, 4), (6, 6)], ids=["gone", "smaller", "as it was", "larger"]
)
def test_the_charge_of_a_claim(there: int, node: str, charged: int) -> None:
    """Whoever writes the node himself may make the claim smaller, and then as large as it was."""
    own = charge_of(stored(None, "gpu=4", nodeName=node), gpus(there), a_policy())
    assert own == Charge(Decimal(charged), None)
    devices = gpus(there, "team-alpha/gpus")
    shared = charge_of(stored("gpus", "gpu=4", nodeName=node), devices, a_policy())
    assert shared == Charge(Decimal(charged), None, shared={"team-alpha/gpus": Decimal(charged)})


@pytest.mark.parametrize("let_in", ["", "gpu", "other=4", "gpu=NaN", "gpu=-4"])
def test_what_says_nothing_of_the_claim_charges_nothing(let_in: str) -> None:
    assert charge_of(stored(None, let_in), (), a_policy()) is None
