"""Stories of rules: each holds with the rule, and fails where the rule is switched off."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import pytest

from tests.ledger.cluster import Cluster
from tests.ledger.virtual_time import in_virtual_time

Tell = Callable[[Cluster], Awaitable[None]]


@dataclass(frozen=True)
class Story:
    """`tell` goes the model's shortest way to a violation without the rule. `off` switches the rule off."""

    tell: Tell
    off: Callable[[pytest.MonkeyPatch], None]


class Stories:
    """The stories of one file, by the model's names of their rules."""

    def __init__(self) -> None:
        self.by_rule: dict[str, Story] = {}

    def of(self, rule: str, off: Callable[[pytest.MonkeyPatch], None]) -> Callable[[Tell], Tell]:
        """A rule's story."""

        def add(tell: Tell) -> Tell:
            assert rule not in self.by_rule, f"two stories of {rule}: one of them would not run"
            self.by_rule[rule] = Story(tell, off)
            return tell

        return add

    def tests(self) -> Any:
        """Two tests of each."""
        return pytest.mark.parametrize("story", self.by_rule.values(), ids=self.by_rule.keys())


@in_virtual_time
async def passes(story: Story) -> None:
    """Tell it, in a cluster of its own."""
    cluster = Cluster()
    try:
        await story.tell(cluster)
    finally:
        await cluster.end()


def fails_without(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tell it without its rule."""
    story.off(monkeypatch)
    with pytest.raises(AssertionError):
        passes(story)


def replaced(owner: object, name: str, by: object) -> Callable[[pytest.MonkeyPatch], None]:
    """Another function in the place of the one that embodies the rule."""
    return lambda monkeypatch: monkeypatch.setattr(owner, name, by)
