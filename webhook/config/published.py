"""The active policy as the leader publishes it: its text, and why the policy file was not taken.

It is in a ConfigMap of its own. Commands answer from it, and a replica that restarts while the file is broken uses it.
"""

import hashlib
from collections.abc import Mapping
from typing import Any, Self

import msgspec

POLICY = "policy.yaml"
"""The key of the policy file in its ConfigMap."""
TEXT = "in-force.yaml"
"""The key of the active policy. It differs from that of the file, which marks an installation's policy."""
LONGEST_TEXT = 900_000
"""Bytes of a published text, because a ConfigMap has 1 MiB at most."""
LONGEST_PROBLEM = 4_000


def active_map_of(policy: str) -> str:
    """Return the name of the ConfigMap with the active policy, by the name of the file's."""
    return f"{policy}-active"


def digest_of(text: str) -> str:
    """Return a short digest of a policy's text, for users and metrics."""
    return hashlib.sha256(text.encode()).hexdigest()[:12]


class Published(msgspec.Struct, frozen=True):
    """The leader's active policy. `text` is "" if it is too long; `problem` is the reason why the file was not taken.

    `since`: when it became active, in RFC 3339.
    """

    text: str
    digest: str
    since: str = ""
    problem: str = ""

    @classmethod
    def read(cls, config_map: Mapping[str, Any]) -> Self | None:
        """Read the published policy from a ConfigMap; None if nothing has been published yet."""
        data = config_map.get("data") or {}
        if not data.get("digest"):
            return None
        fields = (str(data.get(key) or "") for key in (TEXT, "digest", "since", "problem"))
        return cls(*fields)

    def data(self) -> dict[str, str | None]:
        """Return the ConfigMap's data for a merge patch."""
        text = self.text if len(self.text.encode()) <= LONGEST_TEXT else None
        problem = self.problem[:LONGEST_PROBLEM]
        return {TEXT: text, "digest": self.digest, "since": self.since, "problem": problem}


class InstalledPolicy(msgspec.Struct, frozen=True):
    """An installation's policy file, and its published policy.

    `where` is the file's ConfigMap, and `gone`: it does not exist. `unread`: the published policy may not be read.
    """

    where: str
    file: str
    published: Published | None = None
    unread: bool = False
    gone: bool = False

    @property
    def text(self) -> str:
        """The active policy, or the file if no text is published."""
        return (self.published and self.published.text) or self.file

    @property
    def taken(self) -> bool:
        """True if the file is active."""
        found = self.published
        return found is not None and not found.problem and found.digest == digest_of(self.file)
