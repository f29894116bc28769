"""The queue: its entries, their order, and the reservations for them."""

from decimal import Decimal

import pytest
from msgspec.structs import replace

from tests.unit.clock import Clock
from webhook.ledger import draft
from webhook.ledger.account import Account, Entry
from webhook.ledger.leader import pod_view
from webhook.ledger.leader.pod_view import PodView
from webhook.ledger.leader.queue import admitted_pods, book_queue
from webhook.ledger.leader.rewrite import rewritten
from webhook.ledger.protocol import Declared, Gated, Holding
from webhook.ledger.slot_sums import SlotSums, booked_of
from webhook.ledger.versions import Version, WorkingCopy
from webhook.policy.quota.charges import Charge
from webhook.policy.quota.tenant_quotas import TenantQuota
from webhook.policy.values.tenants import QuotaRow, Tenant

from .accounts import TEAM, a_gang, a_holding, a_sum, an_account, an_entry, reserved, tenant

EIGHT = replace(tenant(8), on_exceed="Hold")
GATED = Gated(400, "2026-01-01T00:00:00Z", "1")


def sharing(name: str, **fields: object) -> Holding:
    """A pod with a claim of four GPUs, and one beside it."""
    charge = Charge(Decimal(5), "gpu-batch", shared={f"{TEAM}/claim": Decimal(4)})
    return a_holding(name, controller="rs", charge=charge, **fields)


def a_view(**pods: Holding) -> PodView:
    view = PodView(lambda _: None, Clock())
    view.observe_all(pods)
    return view


def booked(account: Account, view: PodView, owner: Tenant = EIGHT) -> tuple[WorkingCopy, list[str]]:
    """The account once the line is booked, and who waits on."""
    copy = WorkingCopy(Version(TenantQuota("alpha", 1, owner), account, sealed=True, tenant=owner))
    return copy, [each.unit.uid for each in book_queue(copy, view)]


def test_of_a_claim_that_others_hold_yet_nothing_is_reserved_for_the_next_pod() -> None:
    view = a_view(one=sharing("one", ends_in=30.0), two=sharing("two", ends_in=30.0))
    view.release("one")
    account = rewritten(an_account(), view, has_queue=True)
    assert [(each.state, each.uid) for each in account.entries] == [("Used", ""), ("Vacant", "one")]
    assert booked_of(account, EIGHT) == {EIGHT.rows[0]: 6}
    view.release("two")
    assert booked_of(rewritten(account, view, has_queue=True), EIGHT) == {EIGHT.rows[0]: 6}, "they share the claim"


def test_a_gang_for_which_an_account_has_no_place_keeps_nothing_from_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(draft, "MOST_GANGS", 0)
    gated, later = Gated(400, "2026-01-01T00:00:00Z", "1"), Gated(400, "2026-01-01T00:00:01Z", "2")
    view = a_view(
        first=a_holding("first", controller="job", gated=gated), next=a_holding("next", controller="rs", gated=later)
    )
    gang = Declared("Job.batch", TEAM, "job", 1, (Charge(Decimal(2), "gpu-batch"),))
    view.workloads.observe("job", gang)
    copy, waiting = booked(an_account(), view)
    assert reserved(copy.account) == ["next"]
    assert waiting == ["job"]


def test_a_queued_gang_is_booked_in_the_tier_of_its_pods_whatever_its_label_says_since() -> None:
    """Somebody labels the queued Job gpu-training: its pods keep the class of gpu-batch, and use that row."""
    owner = tenant(8, QuotaRow(Decimal(4), tier="gpu-training"))
    pods = {f"pod-{n}": a_holding(f"pod-{n}", controller="job", gated=GATED) for n in range(2)}
    view, relabelled = a_view(**pods), (Charge(Decimal(2), "gpu-training"),)
    view.workloads.observe("job", Declared("Job.batch", TEAM, "job", 1, relabelled))
    copy, waiting = booked(an_account(), view, owner)
    assert (waiting, reserved(copy.account)) == ([], ["pod-0", "pod-1"])
    assert booked_of(copy.account, owner) == {owner.rows[0]: 0, owner.rows[1]: 2}
    for uid, pod in pods.items():
        view.observe(uid, replace(pod, gated=None))
    assert booked_of(rewritten(copy.account, view), owner) == {owner.rows[0]: 0, owner.rows[1]: 2}, "once they run"


def test_a_change_of_flavor_opens_no_gate_by_itself() -> None:
    """The change adds nothing to the total. A tenant that refuses books it, where somebody wrote our gate."""
    before = Charge(Decimal(1), "gpu-batch")
    change = replace(an_entry("pod"), wants=(replace(before, flavor="h100"),), instead_of=before)
    view = a_view(pod=a_holding("pod", flavor="h100", gated=GATED))
    copy, waiting = booked(an_account(an_entry("pod"), change), view, tenant(1))
    assert (waiting, [each.uid for each in admitted_pods(copy.account, view)]) == ([], ["pod"])
    assert booked_of(copy.account, tenant(1))[tenant(1).rows[0]] == 1
    copy, waiting = booked(an_account(an_entry("pod"), change, used=1), view, tenant(1))
    assert (waiting, [*admitted_pods(copy.account, view)]) == (["pod"], [])


def test_a_queue_behind_vacant_slots_of_another_gang_sums_the_account_few_times(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A round that takes longer than a Lease stops the queues of all tenants."""
    sums, add_up = list[SlotSums](), SlotSums._add_up
    monkeypatch.setattr(SlotSums, "_add_up", lambda self: (sums.append(self), add_up(self)))
    small, large = (Charge(Decimal(gpus), "gpu-batch") for gpus in ("0.001", "0.002"))
    left = [an_entry(f"left-{n}", name="", maker="web", of="old", wants=(small,)) for n in range(200)]
    vacant = (replace(each, state="Vacant", until=2**31) for each in left)
    of_new = a_holding("new", controller="new", workload="web", charge=large, gated=GATED)
    view = a_view(**{f"new-{n}": replace(of_new, name=f"new-{n}") for n in range(100)})
    _, waiting = booked(an_account(a_sum(8), *vacant), view)
    assert len(waiting) == 100
    assert len(sums) < 20


def test_who_is_behind_the_head_and_lacks_room_too_reads_the_row_and_who_only_waits_for_the_head_does_not() -> None:
    """The head needs room in its tier first, so one behind it that needs the total alone may start before it."""
    owner = replace(EIGHT, rows=(QuotaRow(Decimal(4), tier="gpu-training"), QuotaRow(Decimal(8))))
    gated = [Gated(priority, f"2026-01-01T00:00:0{n}Z", "1") for n, priority in enumerate((1000, 400, 400))]
    view = a_view(
        head=a_holding("head", charge=Charge(Decimal(3), "gpu-training"), gated=gated[0]),
        large=a_holding("large", 2, gated=gated[1]),
        small=a_holding("small", 1, gated=gated[2]),
    )
    account = an_account(Entry(of="other", wants=(Charge(Decimal(3), "gpu-training"),)), used=4)
    copy = WorkingCopy(Version(TenantQuota("alpha", 1, owner), account, sealed=True, tenant=owner))
    short = [(each.unit.uid, each.short and each.short.row.label, each.behind) for each in book_queue(copy, view)]
    assert short == [("head", "gpu-training", ""), ("large", "total", "head"), ("small", None, "head")]


def test_who_lacks_room_for_what_is_reserved_reads_how_much_that_is() -> None:
    """Its row's GPUs would otherwise seem to be in use."""
    owner = replace(EIGHT, rows=(QuotaRow(Decimal(4), tier="gpu-training"), QuotaRow(Decimal(8))))
    gated = [Gated(priority, f"2026-01-01T00:00:0{n}Z", "1") for n, priority in enumerate((1000, 800))]
    view = a_view(
        head=a_holding("head", charge=Charge(Decimal(3), "gpu-training"), gated=gated[0]),
        next=a_holding("next", charge=Charge(Decimal(3), "gpu-serving"), gated=gated[1]),
    )
    account = an_account(Entry(of="other", wants=(Charge(Decimal(2), "gpu-training"),)), used=2)
    copy = WorkingCopy(Version(TenantQuota("alpha", 1, owner), account, sealed=True, tenant=owner))
    _, last = book_queue(copy, view)
    assert last.short is not None
    total = owner.rows[1]
    assert (last.short.usage[total], last.short.reserved[total]) == (6, 2)


def test_one_pod_alone_is_the_head_where_the_quota_was_lowered_below_a_vacant_slot() -> None:
    """The waiting pods would otherwise each be one: the account and the time of a round would grow with them."""
    waiting = {f"next-{index}": a_holding(f"next-{index}", controller="rs", gated=GATED) for index in range(3)}
    left = replace(an_entry("left", maker="rs", of="rs"), state="Vacant", until=2**31)
    copy, queued = booked(an_account(a_sum(8), left), a_view(**waiting))
    assert queued == [*waiting]
    assert [each.uid for each in copy.account.entries if each.state == "ForQueue"] == ["next-0"]


def test_a_gang_that_grows_needs_no_room_for_what_it_has_while_others_keep_some() -> None:
    """The gang would otherwise wait for twice as much without end, and keep the total from those behind it."""
    owner = tenant(9, QuotaRow(Decimal(3), tier="gpu-training"))
    high = Charge(Decimal(3), "gpu-training"), Charge(Decimal(2), "gpu-training")
    four, five = (Charge(gpus=Decimal(gpus), tier="gpu-batch") for gpus in (4, 5))
    gated = [Gated(priority, "2026-01-01T00:00:00Z", "1") for priority in (1000, 400)]
    view = a_view(
        there=a_holding("there", charge=high[1]),
        head=a_holding("head", charge=high[0], gated=gated[0]),
        some=a_holding("some", 4, controller="job"),
        more=a_holding("more", controller="job", gated=gated[1]),
    )
    view.workloads.observe("job", Declared("Job.batch", TEAM, "job", 2, (five,)))
    some = a_sum(4, namespace=TEAM, of="job")
    account = an_account(Entry(wants=(high[1],)), a_gang("job", four), some)
    copy, waiting = booked(account, view, owner)
    assert waiting == ["head"]
    assert [each.wants for each in copy.account.reserved if each.is_gang] == [(five,)]


def test_who_shares_a_claim_that_is_in_use_needs_no_room_for_it_while_a_slot_is_reserved() -> None:
    """The pod would otherwise wait for the claim's GPUs once more, and keep the total from those behind it."""
    claim = Charge(Decimal(4), "gpu-batch", shared={f"{TEAM}/claim": Decimal(4)})
    gated = Gated(400, "2026-01-01T00:00:00Z", "1")
    view = a_view(
        there=a_holding("there", controller="rs", charge=claim),
        gone=a_holding("gone", controller="other", ends_in=30.0),
        next=a_holding("next", controller="rs", charge=claim, gated=gated),
    )
    view.release("gone")
    copy, waiting = booked(an_account(Entry(wants=(claim,))), view, tenant(5))
    assert waiting == []
    assert reserved(copy.account) == ["next"]


def test_a_gang_that_grows_keeps_of_the_total_only_what_it_has_not_yet() -> None:
    """The gang has four of sixteen, and one ends on its row. It reserves three of the total; others may use eight."""
    owner = tenant(16, QuotaRow(Decimal(8), tier="gpu-batch"))
    four, eight, other = (Charge(Decimal(gpus), "gpu-batch") for gpus in (4, 8, 1))
    gated = [Gated(priority, "2026-01-01T00:00:00Z", "1") for priority in (400, 200)]
    view = a_view(
        some=a_holding("some", 4, controller="job"),
        more=a_holding("more", 4, controller="job", gated=gated[0]),
        low=a_holding("low", charge=Charge(Decimal(8), "gpu-interactive"), gated=gated[1]),
    )
    view.workloads.observe("job", Declared("Job.batch", TEAM, "job", 2, (eight,)))
    account = an_account(Entry(wants=(other,)), a_gang("job", four), a_sum(4, namespace=TEAM, of="job"))
    copy, waiting = booked(account, view, owner)
    assert waiting == ["job"]
    assert reserved(copy.account) == ["low"]


THREE, FOUR, EIGHT_ASKED = (Charge(Decimal(gpus), "gpu-batch") for gpus in (3, 4, 8))


def three_of_four(waiting: int, asked: tuple[Charge, ...] | None) -> tuple[Account, PodView]:
    """A Job that was admitted with four pods, of which one was lost; it asks for this now."""
    pods = {f"old-{number}": a_holding(f"old-{number}", controller="job") for number in range(3)}
    for number in range(waiting):
        gated = Gated(400, f"2026-01-01T00:00:0{number}Z", "1")
        pods[f"new-{number}"] = a_holding(f"new-{number}", controller="job", gated=gated)
    view = a_view(**pods)
    view.workloads.observe("job", Declared("Job.batch", TEAM, "job", 2, asked))
    return an_account(a_gang("job", FOUR), a_sum(3, namespace=TEAM, of="job")), view


def test_a_gang_that_waits_to_grow_gets_the_pod_back_that_it_lost() -> None:
    """Three of four pods would otherwise keep four GPUs, and wait for the fourth until there is room for eight."""
    copy, waiting = booked(*three_of_four(5, (EIGHT_ASKED,)), tenant(7))
    assert reserved(copy.account) == ["new-0"]
    assert waiting == ["job"]


def test_a_gang_of_which_nobody_can_tell_what_it_asks_for_gets_the_pod_back_that_it_lost() -> None:
    """Its runtime may have been deleted while it runs."""
    copy, waiting = booked(*three_of_four(2, None), tenant(4))
    assert reserved(copy.account) == ["new-0"]
    assert waiting == ["new-1"]


def test_so_does_one_with_a_reservation_that_was_not_seen_since() -> None:
    account, view = three_of_four(2, None)
    booked_gang = a_gang("job", FOUR, state="Reserved", generation=2, attempt=1)
    copy, waiting = booked(an_account(booked_gang, account.entries[1]), view, tenant(4))
    assert reserved(copy.account) == ["new-0"]
    assert waiting == ["new-1"]


@pytest.mark.parametrize(("quota", "needs_none"), [(4, False), (5, True)])
def test_a_job_of_one_pod_that_grows_needs_no_room_for_that_again(quota: int, needs_none: bool) -> None:
    """The Job would otherwise wait for five of four GPUs, and keep all from those behind it for ever."""
    gated = [Gated(400, f"2026-01-01T00:00:0{number}Z", "1") for number in range(3)]
    grown = {f"new-{number}": a_holding("new", controller="job", gated=each) for number, each in enumerate(gated)}
    view = a_view(old=a_holding("old", controller="job"), **grown)
    if needs_none:
        view.observe("gone", a_holding("gone", controller="rs", ends_in=30.0))
        view.release("gone")
    view.workloads.observe("job", Declared("Job.batch", TEAM, "job", 2, (FOUR,)))
    copy, waiting = booked(an_account(used=1), view, tenant(quota))
    assert waiting == []
    assert reserved(copy.account) == ["new-0", "new-1", "new-2"]
    assert copy.usage == {QuotaRow(Decimal(quota)): 4}


def test_who_moves_to_another_tenant_keeps_nothing_from_those_who_stay() -> None:
    """That may take long: nothing moves while the account of any tenant is rebuilt."""
    gated = [Gated(400, f"2026-01-01T00:00:0{number}Z", "1") for number in range(2)]
    view = a_view(
        moves=Holding("moving", Charge(Decimal(1), "gpu-batch"), name="moves", gated=gated[0]),
        stays=a_holding("stays", gated=gated[1]),
    )
    copy, waiting = booked(an_account(namespaces={TEAM: "open", "moving": "closed"}), view)
    assert reserved(copy.account) == ["stays"]
    assert waiting == []


def of_job(name: str, **fields: object) -> Holding:
    """A gated pod whose controller, Job `job`, may be a gang."""
    gated = Gated(400, "2026-01-01T00:00:00Z", "1", awaits_controller=True)
    return a_holding(name, controller="job", gated=gated, **fields)


def test_a_pod_is_not_booked_alone_while_its_controller_may_be_a_gang() -> None:
    """The watch of Jobs may lag behind that of pods, and half a gang would hold its GPUs for ever."""
    view = a_view(one=of_job("one"), two=of_job("two"))
    copy, waiting = booked(an_account(), view)
    assert (reserved(copy.account), waiting) == ([], [])
    view.workloads.observe("job", Declared("Job.batch", TEAM, "job", 1, (Charge(Decimal(2), "gpu-batch"),)))
    copy, _ = booked(an_account(), view)
    assert reserved(copy.account) == ["one", "two"]
    assert [uid for _, uid in copy.account.gangs] == ["job"]


def test_a_pod_of_a_suspended_gang_waits_until_the_view_shows_that_it_was_resumed() -> None:
    view = a_view(one=of_job("one"))
    view.workloads.observe("job", Declared("Job.batch", TEAM, "job", 1, (), stopped=True))
    copy, waiting = booked(an_account(), view)
    assert (reserved(copy.account), waiting) == ([], [])


@pytest.mark.parametrize("seen", ["a single pod", "another namespace", "ended"])
def test_a_pod_that_can_be_of_no_gang_is_booked_alone(seen: str) -> None:
    """The pod must not wait for ever."""
    view = a_view(one=of_job("one"))
    if seen == "ended":
        view.workloads.release("job")
    else:
        namespace, charges = (TEAM, ()) if seen == "a single pod" else ("other", (Charge(Decimal(2), "gpu-batch"),))
        view.workloads.observe("job", Declared("Job.batch", namespace, "job", 1, charges))
    copy, _ = booked(an_account(), view)
    assert reserved(copy.account) == ["one"]


def test_pods_of_very_many_makers_are_not_taken_for_missing_because_another_maker_is_new() -> None:
    """An account has the counts of so many, and of one more the last is left out."""
    pods = {f"p{n}": a_holding(f"p{n}", controller=f"m{n}") for n in range(pod_view.MOST_COUNTED)}
    account = rewritten(an_account(), a_view(**pods), has_queue=True)
    assert len(account.pod_counts) == pod_view.MOST_COUNTED
    replacement = a_view(**pods, new=a_holding("new", controller="a"))
    replacement.inherit(account)
    assert list(replacement.vacant.of(account.namespaces)) == []
    del pods["p0"]
    replacement = a_view(**pods)
    replacement.inherit(account)
    assert [each.maker for each in replacement.vacant.of(account.namespaces)] == ["m0"]
