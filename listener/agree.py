"""Makes all ranks of a run save after the same step.

It uses torch's own store, because that is there already and needs no port, no collective and no wait for a GPU. So it
can't interfere with the program. Every wait has a limit.
"""

from __future__ import annotations

import os
import sys
import time
from typing import Any

from listener.protocol import MEET_SECONDS

NEVER = 1 << 40
"""The step that is named once a rank has stopped listening."""
LEFT = 1 << 30
"""What a rank that stops adds to the count of askers."""
PATIENCE = 2.0
"""Seconds that the first rank waits at a step before it names a later one; doubled each time."""
LOOK_SECONDS = 0.05
"""How seldom fast steps ask the store: one process answers all ranks."""


class Ranks:
    """The ranks of the run. A single process has nothing to agree upon."""

    def __init__(self, call: int) -> None:
        self.rank, self.world, self.ahead = 0, 1, 1
        self.store: Any = None
        local = ("LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID")
        self.local = int(next((os.environ[name] for name in local if name in os.environ), "0"))
        self.announced, self.target, self.tries = False, 0, 0
        self.looked, self.seen, self.stride = 0.0, 0, 1
        dist: Any = sys.modules.get("torch.distributed")
        if dist is not None and dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1:
            from torch.distributed.distributed_c10d import PrefixStore, _get_default_store

            self.rank, self.world = dist.get_rank(), dist.get_world_size()
            self.store = PrefixStore("gpu-tiers/%d" % call, _get_default_store())
            self.ahead = 1 if dist.get_backend() == "gloo" else 2  # a GPU's queue lets a rank run ahead

    def read(self, key: str) -> int:
        return int(self.store.add(key, 0))

    def left(self) -> bool:
        return self.read("asked") >= LEFT

    def leave(self) -> None:
        """Tell the others not to wait for this one."""
        if self.store is not None:
            self.store.add("asked", LEFT)

    def meet(self, key: str, seconds: float) -> bool:
        """Wait until all ranks are here. False after that time, or once one has left."""
        if self.store is None:
            return True
        self.store.add(key, 1)
        until = time.monotonic() + seconds
        while self.read(key) < self.world:
            if time.monotonic() > until or self.left():
                return False
            time.sleep(0.02)
        return True

    def part(self) -> None:
        """Leave the store, the first rank last, because the store may be in its process."""
        if self.store is not None:
            self.store.add("gone", 1)
            until = time.monotonic() + 5
            while self.rank == 0 and self.read("gone") < self.world and time.monotonic() < until:
                time.sleep(0.02)

    def all_listen(self) -> bool:
        """Return True if all have a listener. The first rank decides, so that all have the same answer."""
        if self.store is None:
            return True
        if self.rank == 0:
            yes = self.meet("here", MEET_SECONDS)
            self.store.add("decided", 1 if yes else 2)
            return yes
        self.store.add("here", 1)
        until = time.monotonic() + 2 * MEET_SECONDS
        while time.monotonic() < until:
            decided = self.read("decided")
            if decided:
                return decided == 1
            time.sleep(0.02)
        return False

    def same(self, key: str, value: int) -> int | None:
        """The value if all have the same, else None."""
        if self.store is None:
            return value
        self.store.set("%s/%d" % (key, self.rank), str(value))
        if not self.meet(key, MEET_SECONDS):
            return None
        values = {int(self.store.get("%s/%d" % (key, rank))) for rank in range(self.world)}
        return value if len(values) == 1 else None

    def due(self, step: int, last: int, asked: bool) -> bool:
        """Return True if all save now. Called after each step; `asked` if this pod was.

        The first rank names a step that no rank should have passed, and all wait there until it has seen all of them.
        Where one had run past it, the first rank names a later one. After the last step the program saves by itself.
        """
        if self.store is None:
            return asked and step < last
        if asked and not self.announced:
            self.announced = True
            self.store.add("asked", 1)
        self.look(step, last)
        if self.target >= NEVER:
            raise RuntimeError("another rank stopped listening")
        if not self.target or step < self.target:
            return False
        if step > self.target:
            self.store.add("late/%d" % self.target, 1)
            return False
        self.store.add("at/%d" % step, 1)
        return self.follows(step) if self.rank else self.leads(step, last)

    def look(self, step: int, last: int) -> None:
        """Read what the others want. Once a step is named, read at each step."""
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
        """A step that no rank has passed when it looks again."""
        return min(step + (self.ahead + 2 * (self.stride - 1) << self.tries), last)

    def heed(self, step: int, last: int) -> None:
        """The first rank looks whether somebody asks or has left."""
        count = self.read("asked")
        if count >= LEFT:
            self.name(NEVER)
        elif count and not self.target and step < last:
            self.name(self.later(step, last))

    def name(self, step: int) -> None:
        self.store.add("target", step - self.target)
        self.target = step

    def leads(self, step: int, last: int) -> bool:
        """The first rank, at the step that it named."""
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
        self.store.add("go/%d" % step, 1)
        return True

    def follows(self, step: int) -> bool:
        """Another rank, at the step that the first one named."""
        until = time.monotonic() + MEET_SECONDS
        while not self.read("go/%d" % step):
            if self.read("target") != step:
                return False
            if time.monotonic() > until:
                raise TimeoutError("the first rank did not come to step %d" % step)
            time.sleep(0.005)
        return True
