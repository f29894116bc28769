"""A tenant's account without one pod, so that its replacement can be judged."""

from decimal import Decimal
from typing import Any

import pytest

from tests.builders import a_job, a_pod
from webhook.admission.reviewer import Verdict
from webhook.cli.explain.explanation import next_finding, refusal_of
from webhook.cli.explain.replacement import account_without, evicted_first
from webhook.cli.manifests.documents import Document
from webhook.cli.manifests.finding import Finding
from webhook.ledger.account import Account, Entry
from webhook.policy.quota import refusals
from webhook.policy.quota.charges import Charge, Shortfall
from webhook.policy.values.tenants import QuotaRow, Tenant


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
    (others,) = account_without(Account(entries=(Entry(wants=(H100, ANY, BATCH)),)), "a", pod).entries
    assert others.wants == left


def test_one_that_is_listed_by_itself_is_not_taken_out_twice() -> None:
    a, b = (Entry(uid=uid, namespace="alpha", wants=(charge(2),)) for uid in "ab")
    others = Entry(wants=(ANY,))
    assert account_without(Account(entries=(others, a, b)), "a", charge(2)).entries == (others, b)


def test_the_lowest_of_those_that_run_is_evicted_first() -> None:
    def pod(name: str, priority: int, phase: str = "Running") -> dict[str, Any]:
        return {"metadata": {"name": name}, "spec": {"priority": priority}, "status": {"phase": phase}}

    found = evicted_first([pod("ended", 0, "Succeeded"), pod("training", 1000), pod("demoted", 400)])
    assert found is not None
    assert found["metadata"]["name"] == "demoted"
    assert evicted_first([pod("ended", 0, "Failed")]) is None


def over_quota(used: int) -> Verdict:
    full = QuotaRow(Decimal(8), "gpu-training")
    short = Shortfall(charge(1), full, {full: Decimal(used)})
    refusal = refusals.pod_fit(short, Tenant("alpha", rows=(full,)), ()).refusal
    return Verdict(refusal=refusal)


def finding(verdict: Verdict, *pods: Finding) -> Finding:
    tree = (a_job() if pods else a_pod()).json()
    return Finding(Document("", tree), verdict, tree, pods=pods)


def test_the_sentence_says_what_the_table_of_the_rows_says() -> None:
    """The tenant uses 10 of 8 GPUs, one of them in the pod that is replaced."""
    now, in_its_place = finding(over_quota(10)), finding(over_quota(9))
    shown = "exceeded quota: tenant alpha: gpu-training is at 10 of 8 GPUs; this pod asks for 1. "
    assert refusal_of(next_finding(now, in_its_place), booked=False).startswith(shown)
    of_job = next_finding(finding(over_quota(10), now), finding(over_quota(9), in_its_place))
    assert refusal_of(of_job, booked=False).startswith(shown)


def test_what_fits_in_the_place_of_another_says_so() -> None:
    fits = finding(Verdict())
    assert next_finding(finding(over_quota(8)), fits) is fits
    one_by_one = finding(over_quota(8), fits)
    assert next_finding(finding(over_quota(8), finding(over_quota(8))), one_by_one) is one_by_one
