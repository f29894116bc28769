"""An event loop whose clock the test moves: an hour of waiting takes no time, and the same happens in every run."""

import asyncio
import functools
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec

P = ParamSpec("P")


class VirtualLoop(asyncio.SelectorEventLoop):
    """A loop whose clock jumps to the next timer as soon as nothing else can happen."""

    def __init__(self) -> None:
        self._now = 1000.0
        self._goal: tuple[float, asyncio.Future[None]] | None = None
        super().__init__(_Selector(self.idle))

    def time(self) -> float:
        return self._now

    async def settle(self) -> None:
        """Let everything happen that can happen now; no time passes."""
        await self.pass_time(0)

    async def pass_time(self, seconds: float) -> None:
        """Let so many seconds pass, and everything happen that comes due."""
        assert self._goal is None, "somebody else moves the clock"
        self._goal = (self._now + seconds, self.create_future())
        await self._goal[1]

    def idle(self, wait: float | None) -> None:
        """Wait until nothing can happen for this long; None: never again."""
        if self._goal is None:
            assert wait is not None, "everybody waits for something that will never happen"
            self._now += wait
        elif wait is not None and self._now + wait <= self._goal[0]:
            self._now += wait
        else:
            (self._now, waiting), self._goal = self._goal, None
            if not waiting.done():
                waiting.set_result(None)


class _Selector(selectors.DefaultSelector):  # type: ignore[misc,valid-type]
    def __init__(self, idle: Callable[[float | None], None]) -> None:
        super().__init__()
        self._idle = idle

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if not ready and timeout != 0:
            self._idle(timeout)
        return ready


def loop() -> VirtualLoop:
    """The loop that runs the test."""
    running = asyncio.get_running_loop()
    assert isinstance(running, VirtualLoop)
    return running


async def settle() -> None:
    """Let everything happen that can happen now; no time passes."""
    await loop().settle()


async def pass_time(seconds: float) -> None:
    """Let so many seconds pass, and everything happen that comes due."""
    await loop().pass_time(seconds)


def in_virtual_time(story: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """A test that is a story in virtual time."""

    @functools.wraps(story)
    def test(*args: P.args, **kwargs: P.kwargs) -> None:
        with asyncio.Runner(loop_factory=VirtualLoop) as runner:
            runner.run(story(*args, **kwargs))

    return test
