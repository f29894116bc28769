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
        self.texts: dict[str, str] = {}
        self.lock = threading.Lock()

    def add(self, key: str, amount: int) -> int:
        with self.lock:
            self.counts[key] += amount
            return self.counts[key]

    def set(self, key: str, text: str) -> None:
        self.texts[key] = text

    def get(self, key: str) -> str:
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
    steps = [first.due(step, LAST, asked=True) for step in range(1, 2)]
    assert steps == [False]
    with pytest.raises(TimeoutError):
        any(first.due(step, LAST, asked=True) for step in range(2, LAST))


def test_nobody_saves_after_the_last_step() -> None:
    alone = Ranks(1)
    assert alone.due(LAST - 1, LAST, asked=True)
    assert not alone.due(LAST, LAST, asked=True)
    assert together(2, lambda rank: rank.due(LAST, LAST, asked=True)) == [False, False]


def test_ranks_that_see_the_same_go_on() -> None:
    assert together(3, lambda rank: rank.same("resume", 40)) == [40, 40, 40]
    assert together(3, lambda rank: rank.same("resume", rank.rank)) == [None, None, None]
    assert together(2, lambda rank: rank.all_listen()) == [True, True]
