"""The stored changes, one by one, read from etcd itself, so that no restart of the API server leaves a gap.

A revision of etcd is a resourceVersion of the API server. The API server must store JSON
(--storage-media-type=application/json), and a history is read within the five minutes after which it compacts.
"""

import base64
import json
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import msgspec

Tree = dict[str, Any]

PREFIX = "/registry/"
SECONDS = 60


@dataclass(frozen=True)
class Change:
    """One object as it was from this revision on; None is its end."""

    revision: int
    key: str
    stored: Tree | None

    @property
    def place(self) -> tuple[str, str]:
        """The key's last two parts: namespace and name of a pod."""
        _, namespace, name = self.key.rsplit("/", 2)
        return namespace, name


class History:
    """The changes from now on."""

    def __init__(self, etcd_url: str) -> None:
        self._url = etcd_url
        self._since = self.revision() + 1

    def revision(self) -> int:
        """The revision of this moment."""
        with self._ask("kv/range", {"key": _encoded(PREFIX)}) as answer:
            return int(json.load(answer)["header"]["revision"])

    def changes(self, *kinds: str) -> Iterator[Change]:
        """Yield the changes until now of these kinds, such as "pods", in their order."""
        until = self.revision()
        prefixes = tuple(f"{PREFIX}{kind}/" for kind in kinds)
        for revision, event in self._events(until):
            key = base64.b64decode(event["kv"]["key"]).decode()
            if key.startswith(prefixes):
                gone = event.get("type") == "DELETE"
                yield Change(revision, key, None if gone else _decoded(event["kv"]["value"]))

    def _events(self, until: int) -> Iterator[tuple[int, Tree]]:
        """The events of all keys, for the last revision is some key's: only so the end is known."""
        if until < self._since:
            return
        everything = {"key": _encoded("\0"), "range_end": _encoded("\0"), "start_revision": str(self._since)}
        with self._ask("watch", {"create_request": everything}) as answer:
            for line in answer:
                result = msgspec.json.decode(line)["result"]
                if int(result.get("compact_revision", 0)):
                    raise RuntimeError(f"etcd has compacted the history from revision {self._since} on")
                for event in result.get("events", ()):
                    revision = int(event["kv"]["mod_revision"])
                    if revision > until:
                        return
                    yield revision, event
                if int(result["header"]["revision"]) >= until and _reached(result, until):
                    return

    def _ask(self, path: str, body: Tree) -> Any:
        request = urllib.request.Request(f"{self._url}/v3/{path}", json.dumps(body).encode())  # noqa: S310
        return urllib.request.urlopen(request, timeout=SECONDS)  # noqa: S310 - our own etcd


def _reached(result: Tree, until: int) -> bool:
    """Return whether the last event of this answer has the last revision that was asked for."""
    events = result.get("events", ())
    return bool(events) and int(events[-1]["kv"]["mod_revision"]) >= until


def _encoded(key: str) -> str:
    return base64.b64encode(key.encode()).decode()


def _decoded(value: str) -> Tree:
    stored: Tree = msgspec.json.decode(base64.b64decode(value))
    return stored
