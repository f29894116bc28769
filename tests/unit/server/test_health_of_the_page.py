"""The health line of the page on webhook configurations that somebody deleted."""

from datetime import UTC, datetime
from types import SimpleNamespace

import pytest

from certs.configurations import KINDS, Seen
from webhook.server.page_ports import health_of

NOW = datetime(2026, 11, 22, tzinfo=UTC)
MUTATING, VALIDATING = KINDS
UNTIERED = "MutatingWebhookConfiguration missing or without a path: no pod gets a tier"
NOTHING_REFUSED = "ValidatingWebhookConfiguration missing or without a path: nothing is refused, and no quota holds"


def health_with(*there: str) -> str:
    """Return the line for a cluster that has these configurations."""
    entry = {"clientConfig": {"url": "https://gpu-tiers.example.com/x/validate"}}
    seen = {kind: Seen({"webhooks": [entry]} if kind in there else None, NOW) for kind in KINDS}
    cluster, active = SimpleNamespace(problems=list), SimpleNamespace(problem="", taken=True)
    found = health_of({}, cluster, SimpleNamespace(seen=seen), active)  # type: ignore[arg-type]
    return found["webhook configurations"]


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
    assert health_with(*there) == says
