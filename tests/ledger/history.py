"""The history of one kind of object as etcd has it: each state that ever was, under a growing version."""

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

Tree = dict[str, Any]
Key = tuple[str, str]
"""Namespace and name."""

Selects = Callable[[Tree], bool]


@dataclass(frozen=True)
class Change:
    """One version: an object as it was before and as it is now; None where there is none."""

    version: int
    before: Tree | None
    now: Tree | None

    def seen_by(self, selects: Selects) -> tuple[Literal["ADDED", "MODIFIED", "DELETED"], Tree] | None:
        """Return what a watch with a selector shows. A deleted object appears as it was last, at its end's version."""
        before = self.before if self.before is not None and selects(self.before) else None
        now = self.now if self.now is not None and selects(self.now) else None
        if now is not None:
            return ("ADDED" if before is None else "MODIFIED"), now
        return ("DELETED", at_version(before, self.version)) if before is not None else None


class History:
    """Objects of one kind. Each kind counts versions of its own: those of two kinds can't be compared."""

    def __init__(self, first: int) -> None:
        self.version = first
        self.objects: dict[Key, Tree] = {}
        self.changes: list[Change] = []
        self.oldest = first
        self.on_write: Callable[[], None] = lambda: None
        self._news = asyncio.Event()

    def write(self, key: Key, tree: Tree | None) -> Tree | None:
        """Store an object in place of what is there; None: it goes."""
        self.version += 1
        before = self.objects.pop(key, None)
        now = at_version(tree, self.version) if tree is not None else None
        if now is not None:
            self.objects[key] = now
        self.changes.append(Change(self.version, before, now))
        self.on_write()
        self.tell()
        return now

    def after(self, version: int) -> Iterator[Change]:
        """The changes since a version, in their order."""
        first = self.changes[0].version if self.changes else 0
        return iter(self.changes[max(version + 1 - first, 0) :])

    def at(self, version: int) -> Mapping[Key, Tree]:
        """The objects as they were at a version."""
        if version >= self.version:
            return self.objects
        then = dict(self.objects)
        for change in reversed(list(self.after(version))):
            if change.now is not None:
                then.pop(key_of(change.now), None)
            if change.before is not None:
                then[key_of(change.before)] = change.before
        return then

    def tell(self) -> None:
        """Wake those who wait for news."""
        self._news.set()
        self._news = asyncio.Event()

    async def news(self) -> None:
        """Wait until something is written, or somebody is to look again."""
        await self._news.wait()


def key_of(tree: Tree) -> Key:
    """Return the key of an object."""
    return tree["metadata"].get("namespace", ""), tree["metadata"]["name"]


def at_version(tree: Tree, version: int) -> Tree:
    """A copy that bears the version."""
    return {**tree, "metadata": {**tree["metadata"], "resourceVersion": str(version)}}


def copied(tree: Any) -> Any:
    """The same over the wire: what isn't JSON fails."""
    return json.loads(json.dumps(tree))
