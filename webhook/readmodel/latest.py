"""The latest of what happens, as many as somebody may look at."""

from collections import deque
from collections.abc import Iterator
from typing import Generic, TypeVar

T = TypeVar("T")


class Latest(Generic[T]):
    """So many of them at the `most`; the oldest goes first."""

    def __init__(self, most: int) -> None:
        self._kept: deque[T] = deque(maxlen=most)

    def add(self, happened: T) -> None:
        """It has happened."""
        self._kept.append(happened)

    def __iter__(self) -> Iterator[T]:
        """The latest first."""
        return reversed(self._kept)
