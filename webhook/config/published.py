"""What the leader publishes of the active policy: its text, and why the policy file was not taken.

It lies in a ConfigMap beside the policy's own. Commands answer from it, and a replica that restarts while the file is
broken goes on with it.
"""

import hashlib
from collections.abc import Mapping
from typing import Any, Self

import msgspec

POLICY = "policy.yaml"
"""The key of the policy file in its ConfigMap."""
TEXT = "in-force.yaml"
"""Another key than that of the file: a ConfigMap with that one is an installation's policy."""
LONGEST_TEXT = 900_000
"""Bytes of a text that is published: a ConfigMap has 1 MiB."""
LONGEST_PROBLEM = 4_000


def place_beside(policy: str) -> str:
    """The name of the ConfigMap beside that of a policy."""
    return f"{policy}-active"


def digest_of(text: str) -> str:
    """A policy's text in a few characters, for people and metrics."""
    return hashlib.sha256(text.encode()).hexdigest()[:12]


class Published(msgspec.Struct, frozen=True):
    """A replica's policy. `text` is "" where it is too long; `problem` says why the file was not taken.

    `since`: when it became active, as RFC 3339 has it.
    """

    text: str
    digest: str
    since: str = ""
    problem: str = ""

    @classmethod
    def read(cls, config_map: Mapping[str, Any]) -> Self | None:
        """None where nothing has been published yet."""
        data = config_map.get("data") or {}
        if not data.get("digest"):
            return None
        told = (str(data.get(key) or "") for key in (TEXT, "digest", "since", "problem"))
        return cls(*told)

    def data(self) -> dict[str, str | None]:
        """The ConfigMap's data as a merge patch writes it."""
        text = self.text if len(self.text.encode()) <= LONGEST_TEXT else None
        problem = self.problem[:LONGEST_PROBLEM]
        return {TEXT: text, "digest": self.digest, "since": self.since, "problem": problem}


class InstalledPolicy(msgspec.Struct, frozen=True):
    """An installation's policy file, and what is published beside it.

    `where` is the file's ConfigMap. `unread`: the other one may not be read. `gone`: the file's does not exist.
    """

    where: str
    file: str
    published: Published | None = None
    unread: bool = False
    gone: bool = False

    @property
    def text(self) -> str:
        """The active policy, else the file."""
        return (self.published and self.published.text) or self.file

    @property
    def taken(self) -> bool:
        """Whether the file is what is active."""
        found = self.published
        return found is not None and not found.problem and found.digest == digest_of(self.file)
