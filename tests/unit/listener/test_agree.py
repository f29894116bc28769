"""The ranks all save after the same step, or none does and nobody waits for long."""

import itertools
import random
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from types import SimpleNamespace

import pytest

from listener import agree
from listener.agree import Ranks

LAST = 60


class Store:
    """The store of torch, for threads."""

    def __init__(self) -> None:
        self.counts: defaultdict[str, int] = defaultdict(int)
        self.texts: dict[str, bytes] = {}
        self.lock = threading.Lock()

    def add(self, key: str, amount: int) -> int:
        with self.lock:
            self.counts[key] += amount
            return self.counts[key]

    def set(self, key: str, text: str) -> None:
        self.texts[key] = text.encode()

    def get(self, key: str) -> bytes:
        return self.texts[key]


def ranks(world: int) -> list[Ranks]:
    store, made = Store(), []
    for rank in range(world):
        one = Ranks(1)
        one.rank, one.world, one.store = rank, world, store
        made.append(one)
    return made


def together(world: int, what: Callable[[Ranks], object]) -> list[object]:
    """Return the outcome of each rank, each in a thread; an error is its outcome."""
    outcome: list[object] = [None] * world

    def one(each: Ranks) -> None:
        try:
            outcome[each.rank] = what(each)
        except (RuntimeError, TimeoutError) as error:
            outcome[each.rank] = type(error)

    threads = [threading.Thread(target=one, args=(each,)) for each in ranks(world)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    return outcome


@pytest.mark.parametrize("asks", [{0}, {2}, {1, 2}])
@pytest.mark.parametrize("seed", range(3))
def test_three_ranks_that_step_together_save_the_same_step(
    asks: set[int], seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agree, "PATIENCE", 30)  # a busy machine is no rank that ran ahead
    monkeypatch.setattr(agree, "LOOK_SECONDS", 0)
    collective = threading.Barrier(3)
    by_chance = random.Random(seed)  # noqa: S311
    first = {rank: by_chance.randint(2, 20) for rank in asks}

    def train(rank: Ranks) -> int | None:
        for step in range(1, LAST + 1):
            collective.wait(10)
            if rank.due(step, LAST, rank.rank in asks and step >= first[rank.rank]):
                return step
        return None

    saved = set(together(3, train))
    assert len(saved) == 1
    (step,) = saved
    assert isinstance(step, int)
    assert min(first.values()) < step <= min(first.values()) + 3


@pytest.mark.parametrize("seed", range(3))
def test_ranks_whose_steps_are_fast_share_a_look_and_save_the_same_step(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A step takes a fraction of a look's time, so whoever names one has to name it far enough ahead."""
    ticks = defaultdict[int, Iterator[int]](itertools.count)  # of each rank a clock, which goes on when it is looked at
    clock = SimpleNamespace(monotonic=lambda: next(ticks[threading.get_ident()]) / 200, sleep=time.sleep)
    monkeypatch.setattr(agree, "time", clock)
    collective, looks = threading.Barrier(3), [0, 0, 0]
    request = 200 + random.Random(seed).randint(0, 100)  # noqa: S311

    def train(rank: Ranks) -> int | None:
        read = rank.read

        def counted(key: str) -> int:
            looks[rank.rank] += 1
            return read(key)

        rank.read = counted  # type: ignore[method-assign]
        for step in range(1, 10_000):
            collective.wait(10)
            if rank.due(step, 10_000, rank.rank == seed and step >= request):
                return step
            if step == request:
                assert max(looks) < request / 2
        return None

    saved = set(together(3, train))
    assert len(saved) == 1
    assert isinstance(saved.pop(), int)


def test_a_rank_that_ran_ahead_is_met_at_a_later_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agree, "PATIENCE", 0.05)

    def train(rank: Ranks) -> int | None:
        for step in range(1, LAST + 1):
            time.sleep(0.001 if rank.rank else 0.02)  # no collective holds them together
            if rank.due(step, LAST, rank.rank == 0 and step >= 3):
                return step
        return None

    saved = together(2, train)
    assert saved[0] in (None, saved[1], TimeoutError)


def test_who_stops_listening_holds_nobody_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agree, "PATIENCE", 30)
    begun = time.monotonic()

    def train(rank: Ranks) -> int | None:
        for step in range(1, LAST + 1):
            if rank.rank == 1 and step == 5:
                rank.leave()
                return None
            time.sleep(0.001)
            if rank.due(step, LAST, step >= 10):
                return step
        return None

    assert together(2, train)[0] is RuntimeError
    assert time.monotonic() - begun < 20


def test_who_never_comes_is_waited_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agree, "MEET_SECONDS", 0.3)
    monkeypatch.setattr(agree, "PATIENCE", 0.05)
    first, _ = ranks(2)
    assert first.all_listen() is False
    steps = [first.due(step, LAST, ends=True) for step in range(1, 2)]
    assert steps == [None]
    with pytest.raises(TimeoutError):
        any(first.due(step, LAST, ends=True) for step in range(2, LAST))


def test_nobody_saves_after_the_last_step() -> None:
    alone = Ranks(1)
    assert alone.due(LAST - 1, LAST, ends=True)
    assert not alone.due(LAST, LAST, ends=True)
    assert together(2, lambda rank: rank.due(LAST, LAST, ends=True)) == [None, None]


def test_ranks_that_see_the_same_go_on() -> None:
    assert together(3, lambda rank: rank.same("resume", 40)) == [40, 40, 40]
    assert together(3, lambda rank: rank.same("resume", rank.rank)) == [None, None, None]
    assert together(2, lambda rank: rank.all_listen()) == [True, True]


WISH = {"id": "a", "step": 0}


def rounds(
    rank: Ranks,
    collective: threading.Barrier,
    asked: Callable[[int], tuple[bool, dict[str, object] | None]],
    failing: Callable[[int], str] = lambda _: "",
) -> list[tuple[object, ...]]:
    """Train up to the last step, or the save after which the program ends; return what happened at which step."""
    happened: list[tuple[object, ...]] = []
    for step in range(1, LAST + 1):
        collective.wait(10)
        decided = rank.due(step, LAST, *asked(step))
        if decided is None:
            continue
        if "outcome" in decided:
            rank.next_round()
            happened.append((step, decided["id"], decided["outcome"]))
            continue
        why = rank.all_saved(failing(len(happened)))
        happened.append((step, decided.get("id", "ends"), why))
        if "ends" in decided and not why:
            break
    return happened


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agree, "PATIENCE", 30)
    monkeypatch.setattr(agree, "LOOK_SECONDS", 0)


def agreed(outcome: list[object]) -> list[tuple[object, ...]]:
    assert all(each == outcome[0] for each in outcome), outcome
    assert isinstance(outcome[0], list)
    return outcome[0]


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("seed", range(5))
def test_wishes_that_reach_any_rank_at_any_time_are_saved_for_in_rounds_until_a_hook_asks(seed: int) -> None:
    """Each wish reaches each of some ranks once, at a step of its own; then the pod of one rank is deleted."""
    by_chance, collective = random.Random(seed), threading.Barrier(4)  # noqa: S311
    names = ["a", "b", "c"]
    reach = [{by_chance.randrange(4): by_chance.randint(2, 35) for _ in range(2)} for _ in names]
    ends, end_at = by_chance.randrange(4), by_chance.randint(40, 50)

    def train(rank: Ranks) -> object:
        finished: list[str] = []

        def asked(step: int) -> tuple[bool, dict[str, object] | None]:
            heard = [name for name, of in zip(names, reach, strict=True) if step >= of.get(rank.rank, LAST)]
            waiting = [name for name in heard if name not in finished]
            return rank.rank == ends and step >= end_at, {"id": waiting[0], "step": 0} if waiting else None

        due = rank.due

        def noted(*args: object) -> object:
            decided = due(*args)  # type: ignore[arg-type]
            if decided:
                finished.append(str(decided.get("id")))
            return decided

        rank.due = noted  # type: ignore[method-assign, assignment]
        return rounds(rank, collective, asked)

    happened = agreed(together(4, train))
    assert {name for _, name, _ in happened[:-1]} == set(names), "a wish that came to two ranks may be saved for twice"
    last = happened[-1]
    assert (last[1], last[2]) == ("ends", "")
    assert end_at < int(str(last[0])) <= end_at + 4


@pytest.mark.usefixtures("patient")
def test_a_rank_that_fails_has_failed_for_all_and_the_next_wish_is_saved_for() -> None:
    collective = threading.Barrier(3)

    def train(rank: Ranks) -> object:
        asked = lambda step: (rank.rank == 0 and step >= 40, WISH if rank.rank == 2 and step in (5, 20) else None)  # noqa: E731
        return rounds(rank, collective, asked, lambda past: "its disk is full" if rank.rank == 1 and past == 0 else "")

    happened = agreed(together(3, train))
    assert [each[1:] for each in happened] == [("a", "its disk is full"), ("a", ""), ("ends", "")]


@pytest.mark.usefixtures("patient")
def test_who_waits_for_a_rank_that_failed_is_released() -> None:
    begun = time.monotonic()

    def save(rank: Ranks) -> str:
        if rank.rank == 1:
            return rank.all_saved("its disk is full")
        met = rank.meet("written", 60)
        return rank.all_saved("" if met else "not every rank has written")

    assert together(3, save) == ["its disk is full"] * 3
    assert time.monotonic() - begun < 30


@pytest.mark.usefixtures("patient")
def test_a_hook_that_asks_by_the_time_the_ranks_meet_makes_a_wish_the_end() -> None:
    collective = threading.Barrier(2)

    def train(rank: Ranks) -> object:
        wish = WISH if rank.rank == 0 else None
        return rounds(rank, collective, lambda step: (rank.rank == 1 and rank.read("target") == step, wish))

    happened = agreed(together(2, train))
    assert [each[1:] for each in happened] == [("ends", "")]


@pytest.mark.usefixtures("patient")
def test_a_hook_that_asks_during_a_save_is_heard_in_the_next_round() -> None:
    collective, saving = threading.Barrier(2), threading.Event()

    def train(rank: Ranks) -> object:
        def fails(_: int) -> str:
            saving.set()
            return ""

        return rounds(rank, collective, lambda _: (rank.rank == 1 and saving.is_set(), WISH), fails)

    happened = agreed(together(2, train))
    assert [each[1:] for each in happened][:1] == [("a", "")]
    assert happened[-1][1] == "ends"


@pytest.mark.usefixtures("patient")
def test_the_first_rank_judges_for_all_that_nothing_need_be_saved() -> None:
    collective = threading.Barrier(3)

    def train(rank: Ranks) -> object:
        rank.judge = lambda _: {"outcome": "failed", "why": "no room"} if rank.rank == 0 else {}
        return rounds(rank, collective, lambda step: (False, WISH if rank.rank == 2 and step in (5, 20) else None))

    happened = agreed(together(3, train))
    assert [each[1:] for each in happened] == [("a", "failed")] * 2


@pytest.mark.usefixtures("patient")
def test_who_stops_listening_amid_a_save_lets_nobody_wait() -> None:
    def save(rank: Ranks) -> object:
        if rank.rank == 1:
            rank.leave()
            return "left"
        return rank.all_saved("")

    assert together(2, save) == [TimeoutError, "left"]
