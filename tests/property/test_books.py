"""Entries booked one after another come to what the same entries come to at once, in whatever slots they share."""

from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from webhook.ledger.account import Entry
from webhook.ledger.slot_sums import SlotSums
from webhook.policy.quota.charges import Charge
from webhook.policy.values.tenants import QuotaRow, Tenant

TEN = Decimal(10)
ROWS = QuotaRow(TEN), QuotaRow(TEN, "a"), QuotaRow(TEN, "b"), QuotaRow(TEN, None, "x"), QuotaRow(TEN, "a", "x")
TENANT = Tenant("t", rows=ROWS)
OWNERS = st.sampled_from(["", "g0", "g1", "rs"])
REPLACED = "p0", "p1"
GPUS = st.integers(0, 4).map(Decimal)


@st.composite
def charges(draw: st.DrawFn) -> Charge:
    """Some GPUs, of which a ResourceClaim may give a part."""
    claims = draw(st.dictionaries(st.sampled_from(["n/p", "n/q"]), st.integers(1, 2).map(Decimal), max_size=1))
    gpus = draw(GPUS) + sum(claims.values(), Decimal(0))
    return Charge(gpus, draw(st.sampled_from(["a", "b", None])), draw(st.sampled_from(["x", None])), claims)


def gangs() -> st.SearchStrategy[Entry]:
    return st.builds(
        Entry,
        uid=st.sampled_from(["g0", "g1"]),
        namespace=st.just("n"),
        kind=st.just("K"),
        name=st.sampled_from(["j", "k"]),
        wants=st.lists(charges(), max_size=2).map(tuple),
    )


def pods() -> st.SearchStrategy[Entry]:
    """Pods of these gangs or of none, of which some have one name, and some replace others.

    A pod that is replaced stands in its own slot: drafts put nobody into the slot of one that shares a slot.
    """
    some = st.builds(
        Entry,
        uid=st.sampled_from([f"p{number}" for number in range(6)]),
        namespace=st.just("n"),
        name=st.sampled_from(["web-0", "web-1", ""]),
        of=OWNERS,
        slot=st.sampled_from(["", "", *REPLACED]),
        wants=st.tuples(charges()),
        instead_of=st.one_of(st.none(), st.none(), st.builds(Charge, GPUS, st.just("a"))),
    )
    return some.map(lambda each: replace(each, slot="") if each.uid in REPLACED else each)


def sums() -> st.SearchStrategy[Entry]:
    return st.builds(Entry, namespace=st.just("n"), of=OWNERS, wants=st.tuples(charges()))


def once(entry: Entry) -> tuple[str, str]:
    return entry.uid or f"pods of {entry.of}", entry.kind


@given(st.lists(st.one_of(gangs(), pods(), sums()), max_size=9, unique_by=once))
def test_booked_one_by_one_is_booked_at_once(entries: list[Entry]) -> None:
    books = SlotSums((), TENANT)
    for number, entry in enumerate(entries, 1):
        shown = books.booked_with(entry)
        books = books.with_entry(entry)
        assert shown == books.booked == SlotSums(entries[:number], TENANT).booked


@given(st.lists(st.one_of(gangs(), pods(), sums()), max_size=9, unique_by=once))
def test_no_entry_takes_anything_from_the_others_but_by_sharing_their_slot(entries: list[Entry]) -> None:
    """A row has at least what its largest entry alone comes to."""
    usage = SlotSums(entries, TENANT).booked
    for entry in entries:
        alone = SlotSums([entry], TENANT).booked
        assert all(usage[row] >= gpus for row, gpus in alone.items())
