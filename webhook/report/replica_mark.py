"""The mark by which a replica answers the dry run of `gpu-tiers check`: a warning with its state.

It is added in every mode, also to a refusal. A create that is no dry run is never marked.
"""

from collections.abc import Iterable, Iterator
from typing import Literal

import msgspec

ANNOTATION = "gpu-tiers.dev/check"
"""The annotation of a pod that asks for marks."""
_BEGIN = f"{ANNOTATION}: "
MOST_NAME = 63
"""Characters of a replica's name, because the API server cuts a warning of more than 256."""


class ReplicaMark(msgspec.Struct, frozen=True):
    """The webhook and replica that answered, its active policy, and the age of its knowledge.

    `taken`: its policy file is active. `watches`: seconds since the most silent watch had an event. `certificate`: when
    its serving certificate expires, as a Unix time.
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
