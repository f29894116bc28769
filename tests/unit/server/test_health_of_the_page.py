"""The health line of the page: webhook configurations that somebody deleted or changed, and no leader."""

from collections.abc import Mapping
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest

from certs.configurations import KINDS, Seen
from tests.builders import a_policy
from webhook.server.page_ports import health_of

NOW = datetime(2026, 11, 22, tzinfo=UTC)
MUTATING, VALIDATING = KINDS
UNTIERED = "MutatingWebhookConfiguration missing or without a path: no pod gets a tier"
NOTHING_REFUSED = "ValidatingWebhookConfiguration missing or without a path: nothing is refused, and no quota holds"


def health(*there: str, leader: str = "gpu-tiers-0", failure_policy: str = "Fail") -> Mapping[str, str]:
    """Return what the page says of a cluster that has these configurations, in mode Enforce."""
    config = {"url": "https://gpu-tiers.example.com/x/validate"}
    entry = {"name": "pods.validate.gpu-tiers.dev", "clientConfig": config, "failurePolicy": failure_policy}
    seen = {kind: Seen({"webhooks": [entry]} if kind in there else None, NOW) for kind in KINDS}
    active = SimpleNamespace(problem="", taken=True, current=a_policy)
    cluster, configurations = SimpleNamespace(problems=list), SimpleNamespace(seen=seen)
    return health_of({}, cluster, configurations, active, lambda: leader)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("there", "says"),
    [
        (KINDS, ""),
        (
            (MUTATING,),
            NOTHING_REFUSED,
        ),
        (
            (VALIDATING,),
            f"{UNTIERED}, and in Enforce GPU pods are refused",
        ),
        (
            (),
            f"{UNTIERED}; {NOTHING_REFUSED}",
        ),
    ],
)
def test_it_says_what_comes_of_the_one_that_is_missing(there: tuple[str, ...], says: str) -> None:
    assert health(*there)["webhook configurations"] == says


def test_a_break_glass_that_nobody_ended_is_not_well() -> None:
    """The outage is over, and the engineer who set failurePolicy to Ignore went to bed."""
    assert health(VALIDATING, MUTATING, failure_policy="Ignore")["webhook configurations"].startswith(
        "pods.validate.gpu-tiers.dev has failurePolicy Ignore; mode Enforce needs Fail"
    )
    assert not any(health(*KINDS).values())


def test_without_a_leader_no_replica_is_well() -> None:
    """Replicas answer, and somebody's webhook refuses their Lease."""
    assert health(*KINDS, leader="")["leader"].startswith("no replica leads, so ended pods still fill quotas")
