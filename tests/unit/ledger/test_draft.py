"""The bookings that an account may take."""

from collections import Counter
from decimal import Decimal

import msgspec
import pytest
from msgspec.structs import replace

from webhook.ledger.account import Account, Entry
from webhook.ledger.draft import MOST_OF_ONE_NAME, Draft, NotNow
from webhook.ledger.protocol import Booked, GangBooking
from webhook.ledger.slot_sums import booked_of
from webhook.policy.quota.charges import Charge, Shortfall
from webhook.policy.values.tenants import QuotaRow, Tenant

from .accounts import TEAM, a_booking, a_gang, a_sum, an_account, an_entry, reserved, tenant


def total(account: Account, of: Tenant) -> Decimal:
    return booked_of(account, of)[of.rows[-1]]


def test_what_fits_is_booked_until_nothing_does():
    draft = Draft(an_account(used=1), tenant(3))
    assert isinstance(draft.book(a_booking("one")), Booked)
    assert isinstance(draft.book(a_booking("two")), Booked)
    short = draft.book(a_booking("three"))
    assert isinstance(short, Shortfall)
    assert short.usage[short.row] == 3
    assert reserved(draft.account) == ["one", "two"]


def test_an_account_into_which_nothing_was_booked_stays_the_same_object():
    account = an_account(an_entry("one"))
    draft = Draft(account, tenant(1))
    assert isinstance(draft.book(a_booking("one")), Booked)  # a second review of the same pod
    assert isinstance(draft.book(a_booking("two")), Shortfall)
    assert draft.account is account


@pytest.mark.parametrize("namespaces", [{}, {TEAM: "closed"}])
def test_nobody_books_in_a_namespace_that_is_not_open(namespaces: dict[str, str]) -> None:
    answer = Draft(an_account(namespaces=namespaces), tenant(3)).book(a_booking("one"))
    assert answer == NotNow("namespace team-alpha is not yet in the ledger of tenant alpha")


def test_a_second_create_of_the_same_name_shares_the_place_of_the_first():
    draft = Draft(an_account(an_entry("first", name="web-0")), tenant(1))
    assert isinstance(draft.book(a_booking("second", name="web-0")), Booked)
    assert total(draft.account, tenant(1)) == 1


def test_a_pod_shares_the_place_of_a_listed_pod_of_its_name():
    draft = Draft(an_account(an_entry("old", name="web-0", state="Used")), tenant(1))
    assert isinstance(draft.book(a_booking("new", name="web-0")), Booked)


def test_a_retry_shares_the_slot_of_an_earlier_try_until_a_pod_in_it_is_seen() -> None:
    first = an_entry("first", maker="rs", of="rs", tries_again=True)
    draft = Draft(an_account(first), tenant(1))
    retry = replace(a_booking("second", controller="rs"), tries_again=True, retries=("first",))
    assert isinstance(draft.book(retry), Booked)
    seen = an_entry("second", maker="rs", of="rs", slot="first", state="Used")
    draft = Draft(an_account(first, seen), tenant(1))
    assert isinstance(draft.book(replace(retry, holder="third")), Shortfall)


def test_a_slot_in_which_a_pod_was_seen_is_no_retrys_whoever_the_pods_owner_is_now() -> None:
    """Whoever may edit a pod may take it from its controller, which makes another one at once."""
    first = an_entry("first", maker="rs", of="rs", tries_again=True)
    seen = an_entry("second", slot="first", state="Used")
    retry = replace(a_booking("third", controller="rs"), tries_again=True, retries=("first",))
    assert isinstance(Draft(an_account(first, seen), tenant(1)).book(retry), Shortfall)


@pytest.mark.parametrize("owner", ["", "another"])
def test_a_replacement_that_gets_another_owner_leaves_no_room_for_a_second_one(owner: str) -> None:
    victim = an_entry("victim", maker="rs", state="Used", preempted=True)
    replacement = an_entry("heir", maker=owner, of=owner, slot="victim", state="Used")
    for maker, entries in (
        ("rs", (victim, replacement)),
        (owner, (replace(victim, maker=owner), replace(replacement, maker="rs"))),
    ):
        draft = Draft(an_account(*entries), tenant(1))
        assert isinstance(draft.book(a_booking("second", controller=maker)), Shortfall)


def test_a_further_group_of_a_workload_and_a_workload_of_its_name_both_count() -> None:
    """Both would otherwise be booked as a whole, and only one of them has room."""
    draft, four = Draft(an_account(), tenant(8)), (Charge(Decimal(4), "gpu-batch"),)
    group = GangBooking("web/1", "LeaderWorkerSet.leaderworkerset.x-k8s.io", TEAM, "web-1", tenant(8), four)
    assert isinstance(draft.book(replace(group, uid="another")), Booked)
    assert isinstance(draft.book(replace(group, of_pods=True)), Booked)
    assert total(draft.account, tenant(8)) == 8


def test_long_names_in_one_namespace_leave_the_others_place_in_the_account() -> None:
    """The API server would otherwise store no version of the account any more, and nobody of the tenant could book."""
    draft = Draft(an_account(namespaces={TEAM: "open", "other": "open"}), tenant(1000))
    long = {f"{TEAM}/claim-{number}-{'x' * 240}": 1 for number in range(100)}
    answers = [draft.book(a_booking(f"pod-{number}", 100, shared=long)) for number in range(100)]
    assert isinstance(answers[0], Booked)
    assert isinstance(answers[-1], NotNow)
    group = GangBooking("uid", "PodGroup.kueue.x-k8s.io", TEAM, "x" * 100_000, tenant(0), ())
    assert isinstance(draft.book(group), NotNow)
    assert isinstance(draft.book(replace(a_booking("theirs"), namespace="other")), Booked)
    assert len(msgspec.json.encode(draft.account)) < 2**20


def test_one_replacement_takes_the_place_of_a_preempted_pod():
    victim = an_entry("victim", 2, maker="rs", state="Used", preempted=True)
    draft = Draft(an_account(victim), tenant(2))
    assert isinstance(draft.book(a_booking("stranger", 2, controller="another")), Shortfall)
    assert isinstance(draft.book(a_booking("heir", 2, controller="rs")), Booked)
    assert draft.account.reserved[0].slot == "victim"
    assert isinstance(draft.book(a_booking("second", 2, controller="rs")), Shortfall)
    assert total(draft.account, tenant(2)) == 2


def test_a_preempted_replacement_passes_nothing_on_while_its_own_victim_is_there():
    victim = an_entry("victim", maker="rs", state="Used")
    replacement = an_entry("heir", maker="rs", state="Used", preempted=True, slot="victim")
    assert isinstance(
        Draft(an_account(victim, replacement), tenant(1)).book(a_booking("next", controller="rs")), Shortfall
    )


def test_a_victim_covers_its_replacement_and_no_longer_what_bears_its_name():
    victim = an_entry("victim", name="web-0", maker="rs", state="Used", preempted=True)
    draft = Draft(an_account(victim, an_entry("namesake", name="web-0")), tenant(1))
    assert isinstance(draft.book(a_booking("heir", controller="rs")), Shortfall)
    assert isinstance(Draft(draft.account, tenant(2)).book(a_booking("heir", controller="rs")), Booked)


def test_a_claim_that_pods_share_counts_once():
    draft = Draft(an_account(), tenant(2))
    for uid in ("one", "two", "three"):
        assert isinstance(draft.book(a_booking(uid, 2, shared={"claim": 2})), Booked)
    assert total(draft.account, tenant(2)) == 2
    claimed = Charge(gpus=Decimal(2), tier="gpu-batch", shared={"claim": Decimal(2)})
    stored = an_account(Entry(wants=(claimed,)))
    assert isinstance(Draft(stored, tenant(2)).book(a_booking("four", 2, shared={"claim": 2})), Booked)


def test_a_pod_that_gets_a_flavor_needs_room_on_the_flavor_alone():
    h100 = QuotaRow(Decimal(1), flavor="h100")
    full = an_account(used=3)
    before = Charge(Decimal(1), "gpu-batch")
    draft = Draft(full, tenant(3, h100))
    assert isinstance(draft.book(a_booking("gated", flavor="h100", moved_from=before)), Booked)
    assert booked_of(draft.account, tenant(3, h100)) == {h100: 1, QuotaRow(Decimal(3)): 3}
    assert isinstance(draft.book(a_booking("another", flavor="h100", moved_from=before)), Shortfall)


def test_above_a_quota_that_was_lowered_a_replacement_comes_in_and_nothing_else():
    victim = an_entry("victim", 2, maker="rs", state="Used", preempted=True)
    draft = Draft(an_account(victim, used=4), tenant(3))
    assert isinstance(draft.book(a_booking("another", controller="job")), Shortfall)
    assert isinstance(draft.book(a_booking("heir", 2, controller="rs")), Booked)


def test_pods_of_several_gangs_are_summed_apart():
    gangs = [a_gang(uid, Charge(gpus=Decimal(2), tier="gpu-batch")) for uid in ("one", "two")]
    sums = [a_sum(2, namespace=TEAM, of=uid) for uid in ("one", "two")]
    draft = Draft(an_account(*gangs, *sums), tenant(9))
    assert isinstance(draft.book(a_booking("another")), Booked)
    assert draft.account.entries[:4] == (*gangs, *sums)


SPACES = [TEAM, "second", "third", "fourth"]


def test_a_namespace_may_have_as_much_under_way_as_its_tenant_has_left():
    """Several namespaces that create without end leave something to the others."""
    draft = Draft(an_account(namespaces=dict.fromkeys(SPACES, "open")), tenant(5000))
    let_in = Counter[str]()
    for namespace in SPACES:
        while isinstance(answer := draft.book(a_booking(f"{namespace}-{let_in.total()}", namespace=namespace)), Booked):
            let_in[namespace] += 1
    assert let_in == dict(zip(SPACES, (500, 250, 125, 63), strict=True))
    sentence = "938 pods of tenant alpha are being created at once, 63 of them in namespace fourth"
    assert answer == NotNow(sentence)


def test_of_one_name_only_so_many_are_under_way():
    draft = Draft(an_account(), tenant(1))
    for number in range(MOST_OF_ONE_NAME):
        assert isinstance(draft.book(a_booking(f"uid-{number}", name="web-0")), Booked)
    answer = draft.book(a_booking("one more", name="web-0"))
    assert answer == NotNow("20 pods of the name web-0 are being created at once")


def test_a_namespace_may_have_as_many_workloads_that_nobody_has_seen_as_its_tenant_has_left():
    declared = (Charge(gpus=Decimal(1), tier="gpu-batch"),)
    seen = (a_gang(f"seen-{i}", *declared) for i in range(994))
    unseen = (a_gang(f"new-{i}", *declared, state="Reserved") for i in range(3))
    spaces = dict.fromkeys(SPACES, "open")
    draft = Draft(an_account(*seen, *unseen, namespaces=spaces), tenant(5000))
    charges = (Charge(Decimal(1), "gpu-batch"),)
    answers = [
        draft.book(GangBooking("next", "Job", namespace, "next", tenant(0), charges)) for namespace in (TEAM, "second")
    ]
    assert answers == [NotNow("997 workloads of tenant alpha have not ended", soon=False), Booked()]
