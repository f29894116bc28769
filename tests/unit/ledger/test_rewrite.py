"""The leader rewrites an account by its view of the pods."""

from decimal import Decimal

import pytest

from tests.unit.clock import Clock
from webhook.ledger.account import Account
from webhook.ledger.leader.pod_view import PodView
from webhook.ledger.leader.rewrite import rewritten
from webhook.ledger.protocol import Holding
from webhook.ledger.slot_sums import booked_of
from webhook.policy.quota.charges import Charge

from .accounts import TEAM, a_holding, a_sum, an_account, an_entry, reserved, seen_alone, tenant

ALPHA = tenant(10)


def a_view(clock: Clock | None = None, **pods: Holding) -> PodView:
    """A view in which these pods exist, by uid."""
    view = PodView(lambda _: None, clock or Clock())
    view.observe_all(pods)
    return view


def total(account: Account) -> Decimal:
    return booked_of(account, ALPHA)[ALPHA.rows[-1]]


def test_a_pod_that_is_seen_is_counted_in_place_of_its_reservation():
    account = rewritten(an_account(an_entry("one"), an_entry("two")), a_view(one=a_holding("one")))
    assert account.entries == (a_sum(1), an_entry("two"))


def test_a_reservation_goes_with_the_end_of_its_pod():
    view = a_view(one=a_holding("one"))
    view.release("one")
    assert reserved(rewritten(an_account(an_entry("one"), an_entry("never seen")), view)) == ["never seen"]


def test_a_reservation_of_a_stored_pod_s_name_is_covered_until_that_pod_ends():
    view = a_view(old=a_holding("web-0"))
    account = rewritten(an_account(an_entry("new", name="web-0")), view)
    assert (seen_alone(account), total(account)) == (["old"], 1)
    view.release("old")
    account = rewritten(account, view)
    assert (seen_alone(account), total(account)) == ([], 1)


def test_a_victim_and_its_replacement_are_charged_once_until_the_victim_is_gone():
    view = a_view(victim=a_holding("v", 2, controller="rs", preempted=True))
    account = rewritten(an_account(), view)
    assert [(each.uid, each.preempted) for each in account.entries] == [("victim", True)]
    account = an_account(*account.entries, an_entry("heir", 2, slot="victim", maker="rs"))
    view.observe("heir", a_holding("heir", 2, controller="rs"))
    account = rewritten(account, view)
    assert (sorted(seen_alone(account)), total(account)) == (["heir", "victim"], 2)
    view.release("victim")
    account = rewritten(account, view)
    assert account.entries == (a_sum(2),)


def test_a_replacement_that_comes_to_nothing_frees_the_place():
    view = a_view(victim=a_holding("v", controller="rs", preempted=True))
    replacement = an_entry("heir", slot="victim")
    account = rewritten(an_account(replacement), view, lapsed=[replacement.key])
    assert [each.uid for each in account.entries] == ["victim"]


def test_tries_of_one_pod_count_once_when_the_first_of_them_lapses():
    """Another webhook refused three creates of a Job's pod, and the fourth was stored."""
    tries = [an_entry("first", 2), *(an_entry(each, 2, slot="first") for each in ("second", "third", "stored"))]
    account, view = an_account(*tries), a_view(stored=a_holding("stored", 2))
    for lapsed, left in (("first", ["second", "third"]), ("second", ["third"]), ("third", [])):
        account = rewritten(account, view, lapsed=[each.key for each in account.entries if each.uid == lapsed])
        assert (reserved(account), total(account)) == (left, 2), lapsed


def test_pods_of_other_namespaces_are_not_this_tenant_s():
    view = a_view(one=a_holding("one"), two=a_holding("two", namespace="elsewhere"))
    assert total(rewritten(an_account(), view)) == 1
    assert total(rewritten(an_account(namespaces={TEAM: "closed", "elsewhere": "open"}), view)) == 2


def test_a_move_is_over_once_the_pod_is_seen_on_its_flavor():
    moved = an_entry(
        "gated", wants=(Charge(gpus=Decimal(1), tier="gpu-batch", flavor="h100"),), instead_of=Charge(gpus=Decimal(1))
    )
    assert rewritten(an_account(moved), a_view(gated=a_holding("gated"))).reserved == (moved,)
    assert rewritten(an_account(moved), a_view(gated=a_holding("gated", flavor="h100"))).reserved == ()


@pytest.mark.parametrize(("flavor", "over"), [("h100", True), ("a100", False), (None, False)])
def test_a_move_to_one_of_several_flavors_is_over_once_the_pod_has_got_one(flavor: str | None, over: bool):
    """Its gate was lifted, and it has a node already."""
    booked = Charge(gpus=Decimal(1), tier="gpu-batch", flavor="h100? l4?")
    moved = an_entry("gated", wants=(booked,), instead_of=Charge(gpus=Decimal(1)))
    left = rewritten(an_account(moved), a_view(gated=a_holding("gated", flavor=flavor))).reserved
    assert (left == ()) is over


def test_a_deletion_runs_by_our_own_clock_from_when_it_was_seen_first():
    clock = Clock()
    view = a_view(clock, stuck=a_holding("stuck", ends_in=60))
    clock.now += 59
    view.observe("stuck", a_holding("stuck", ends_in=60))
    assert view.next_end() == clock.now + 1
    clock.now += 1
    view.drop_overdue()
    assert view.next_end() is None
    view.observe("stuck", a_holding("stuck", ends_in=60))
    assert total(rewritten(an_account(), view)) == 0


def test_news_of_a_pod_that_is_proved_over_is_ignored_until_the_next_list():
    view = a_view()
    view.prove_over("late")
    view.observe("late", a_holding("late"))
    assert view.get("late") is None
    view.observe_all({"late": a_holding("late")})
    assert view.get("late") is not None


def test_a_list_of_one_namespace_replaces_what_the_watch_does_not_know_better():
    view = a_view(gone=a_holding("gone"), other=a_holding("other", namespace="elsewhere"))
    listing = view.begin_list()
    view.observe("watched", a_holding("watched"))
    view.end_list(listing)
    view.merge(TEAM, {"listed": a_holding("listed")}, listing)
    assert [uid for uid in ("gone", "other", "watched", "listed") if view.get(uid)] == ["other", "watched", "listed"]
