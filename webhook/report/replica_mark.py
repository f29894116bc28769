"""The mark by which a replica answers the dry run of `gpu-tiers check`: a warning that says how the replica is.

It comes in every mode, also with a refusal. A create that is no dry run is never marked.
"""

from collections.abc import Iterable, Iterator
from typing import Literal

import msgspec

ANNOTATION = "gpu-tiers.dev/check"
"""On the pod that asks for marks."""
_BEGIN = f"{ANNOTATION}: "
MOST_NAME = 63
"""Characters of a replica's name: the API server cuts a warning of more than 256."""


class ReplicaMark(msgspec.Struct, frozen=True):
    """Which webhook answered, of which replica, with which active policy, and how old what it knows may be.

    `taken`: its policy file is active. `watches`: seconds since the watch that was silent longest said something.
    `certificate`: when the one that it serves expires, as a Unix time.
    """

    webhook: Literal["mutate", "validate"]
    replica: str
    policy: str
    taken: bool
    watches: int
    certificate: int

    def warning(self) -> str:
        return _BEGIN + msgspec.json.encode(self).decode()


def marks_in(warnings: Iterable[str]) -> Iterator[ReplicaMark]:
    for each in warnings:
        if each.startswith(_BEGIN):
            yield msgspec.json.decode(each.removeprefix(_BEGIN), type=ReplicaMark)
