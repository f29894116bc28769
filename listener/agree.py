"""Makes all ranks of a run save after the same step, and then end or go on together.

It uses torch's own store, because that is there already and needs no port, no collective and no wait for a GPU. So it
can't interfere with the program. Every wait has a limit. Each save is a round with keys of its own:

1. A rank asks: its pod's hook wants the end, or an answer wished for a save.
2. The first rank names a step, and all meet after it. It decides for all what follows.
3. After a save all meet again. It counts if no rank failed.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any

from listener.protocol import MEET_SECONDS, SAVE_SECONDS

NEVER = 1 << 40
"""The step that is named once a rank has stopped listening, or the ranks did not meet."""
LEFT = 1 << 30
"""What a rank that stops adds to the count of askers."""
PATIENCE = 2.0
"""The most seconds that the first rank waits at a step before it names a later one; doubled each time."""
LOOK_SECONDS = 0.05
"""Seconds between reads until a step is named: one process answers all ranks."""


class Ranks:
    """The ranks of the run. A single process has nothing to agree upon."""

    def __init__(self, call: int, judge: Callable[[dict[str, Any]], dict[str, Any]] = lambda _: {}) -> None:
        """`judge` returns the outcome of a wish that needs no save or can have none, else {} (on the first rank)."""
        self.judge = judge
        self.rank, self.world, self.ahead = 0, 1, 1
        self.store: Any = None
        local = ("LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID")
        self.local = int(next((os.environ[name] for name in local if name in os.environ), "0"))
        self.looked, self.seen, self.stride = 0.0, 0, 1
        self.pods = 1
        """In how many pods the ranks are."""
        self.round = -1
        self.next_round()
        dist: Any = sys.modules.get("torch.distributed")
        if dist is not None and dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1:
            from torch.distributed.distributed_c10d import PrefixStore, _get_default_store

            self.rank, self.world = dist.get_rank(), dist.get_world_size()
            sizes = ("LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE", "SLURM_NTASKS_PER_NODE")
            here = next((os.environ[name] for name in sizes if os.environ.get(name, "").isdecimal()), "1")
            self.pods = max(1, self.world // max(1, int(here)))
            self.store = PrefixStore("gpu-tiers/%d" % call, _get_default_store())
            self.ahead = 1 if dist.get_backend() == "gloo" else 2  # a GPU's queue lets a rank run ahead

    def next_round(self) -> None:
        self.round += 1
        self.ends = self.wishes = False
        """What this rank has asked for in this round."""
        self.target = self.tries = 0

    def key(self, name: str) -> str:
        return "%d/%s" % (self.round, name)

    def add(self, key: str, amount: int = 1) -> int:
        return int(self.store.add(self.key(key), amount))

    def read(self, key: str) -> int:
        return self.add(key, 0)

    def left(self) -> bool:
        return self.read("asked") >= LEFT

    def leave(self) -> None:
        """Tell the others not to wait for this one."""
        if self.store is not None:
            self.add("asked", LEFT)

    def meet(self, key: str, seconds: float) -> bool:
        """Wait until all ranks are here. False after `seconds`, if one stopped listening or (not for "over") failed."""
        if self.store is None:
            return True
        self.add(key)
        until = time.monotonic() + seconds
        while self.read(key) < self.world:
            if time.monotonic() > until or self.left() or (key != "over" and self.read("failed")):
                return False
            time.sleep(0.02)
        return True

    def part(self) -> None:
        """Leave the store; the first rank, in whose process it may be, waits 5 s at most for the others."""
        if self.store is not None:
            self.add("gone")
            until = time.monotonic() + 5
            while self.rank == 0 and self.read("gone") < self.world and time.monotonic() < until:
                time.sleep(0.02)

    def all_listen(self) -> bool:
        """Return True if all have a listener in MEET_SECONDS. The first rank decides; no decision is a no."""
        if self.store is None:
            return True
        if self.rank == 0:
            yes = self.meet("here", MEET_SECONDS)
            self.add("decided", 1 if yes else 2)
            return yes
        self.add("here")
        until = time.monotonic() + 2 * MEET_SECONDS
        while time.monotonic() < until:
            decided = self.read("decided")
            if decided:
                return decided == 1
            time.sleep(0.02)
        return False

    def same(self, key: str, value: int) -> int | None:
        """Return the value if all ranks have the same; None if not, or if they did not meet."""
        if self.store is None:
            return value
        self.store.set(self.key("%s/%d" % (key, self.rank)), str(value))
        if not self.meet(key, MEET_SECONDS):
            return None
        values = {int(self.store.get(self.key("%s/%d" % (key, rank)))) for rank in range(self.world)}
        return value if len(values) == 1 else None

    def due(self, step: int, last: int, ends: bool, wish: dict[str, Any] | None = None) -> dict[str, Any] | None:
        """Return what all ranks do now, or None. Called after each step, with what this pod was asked for.

        `{"ends": True}`: save and end. Else the wish: save for it and go on, unless it has an `outcome` already.
        The first rank names a step that no rank should have passed, and all wait there until it has seen all of them.
        If one is late or past it, the first rank names a later one, and raises in the end. After the last step the
        program saves by itself.
        """
        if self.store is None:
            return self.decide(ends, wish) if (ends or wish) and step < last else None
        if ends and not self.ends:
            self.ends = True
            self.add("ends")
            self.add("asked")
        if wish and not self.wishes:
            self.wishes = True
            if self.add("wishes") == 1:  # the first wish of a round counts, so that all read the same
                self.store.set(self.key("wish"), json.dumps(wish))
            self.add("asked")
        self.look(step, last)
        if self.target >= NEVER:
            raise RuntimeError("another rank stopped listening")
        if not self.target or step < self.target:
            return None
        if step > self.target:
            self.add("late/%d" % self.target)
            return None
        self.add("at/%d" % step)
        if not (self.follows(step) if self.rank else self.leads(step, last)):
            return None
        decided: dict[str, Any] = json.loads(self.store.get(self.key("decision")))
        return decided

    def decide(self, ends: bool, wish: dict[str, Any] | None) -> dict[str, Any]:
        return {"ends": True} if ends or wish is None else {**wish, **self.judge(wish)}

    def all_saved(self, why: str) -> str:
        """Meet after a save and begin the next round. Return why a rank failed ("": none did); `why` is this one's."""
        if self.store is not None:
            if why and self.add("failed") == 1:  # those who waited for that rank failed after it
                self.store.set(self.key("why"), why)
            if not self.meet("over", SAVE_SECONDS):
                raise TimeoutError("not every rank has tried to save")
            why = str(self.store.get(self.key("why")), "utf-8") if self.read("failed") else ""
        self.next_round()
        return why

    def look(self, step: int, last: int) -> None:
        """Read the named step, or name it on the first rank: seldom until it is named, then at each step."""
        if not self.target:
            now = time.monotonic()
            if now - self.looked < LOOK_SECONDS and step < last:
                return
            self.stride = step - self.seen if self.seen else 1
            self.looked, self.seen = now, step
        if self.rank:
            self.target = self.read("target")
        else:
            self.heed(step, last)

    def later(self, step: int, last: int) -> int:
        """Estimate a step that no rank has passed when it looks again; at most `last`."""
        return min(step + (self.ahead + 2 * (self.stride - 1) << self.tries), last)

    def heed(self, step: int, last: int) -> None:
        """Name a step on the first rank if a rank asks, NEVER if one stopped listening."""
        count = self.read("asked")
        if count >= LEFT:
            self.name(NEVER)
        elif count and not self.target and step < last:
            self.name(self.later(step, last))

    def name(self, step: int) -> None:
        self.add("target", step - self.target)
        self.target = step

    def leads(self, step: int, last: int) -> bool:
        """Wait on the first rank for all, and decide; False once it named a later step."""
        until = time.monotonic() + PATIENCE * 2**self.tries
        while self.read("at/%d" % step) < self.world:
            if self.left():
                self.name(NEVER)
                raise RuntimeError("another rank stopped listening")
            if self.read("late/%d" % step) or time.monotonic() > until:
                self.tries += 1
                if step >= last or PATIENCE * 2**self.tries > MEET_SECONDS:
                    self.name(NEVER)
                    raise TimeoutError("the ranks did not meet")
                self.name(self.later(step, last))
                return False
            time.sleep(0.005)
        wish = None if self.read("ends") else json.loads(self.store.get(self.key("wish")))
        self.store.set(self.key("decision"), json.dumps(self.decide(wish is None, wish)))
        self.add("go/%d" % step)
        return True

    def follows(self, step: int) -> bool:
        """Wait on another rank for the decision; False once the first rank named a later step."""
        until = time.monotonic() + MEET_SECONDS
        while not self.read("go/%d" % step):
            if self.read("target") != step:
                return False
            if time.monotonic() > until:
                raise TimeoutError("the first rank did not come to step %d" % step)
            time.sleep(0.005)
        return True
