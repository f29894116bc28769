"""What the page's health line says of webhook configurations that somebody deleted."""

from datetime import UTC, datetime
from types import SimpleNamespace

import pytest

from certs.ca_bundle import KINDS, Seen
from webhook.server.page_ports import health_of

NOW = datetime(2026, 11, 22, tzinfo=UTC)
MUTATING, VALIDATING = KINDS
NOTHING_REFUSED = "no ValidatingWebhookConfiguration: nothing is refused, and no quota holds"


def told(*there: str) -> str:
    """Of a cluster in which these configurations are there."""
    seen = {kind: Seen({"webhooks": [{}]} if kind in there else None, NOW) for kind in KINDS}
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
            "no MutatingWebhookConfiguration: no pod gets a tier, and in Enforce GPU pods are refused",
        ),
        (
            (),
            f"no MutatingWebhookConfiguration: no pod gets a tier; {NOTHING_REFUSED}",
        ),
    ],
)
def test_it_says_what_comes_of_the_one_that_is_missing(there: tuple[str, ...], says: str) -> None:
    assert told(*there) == says
