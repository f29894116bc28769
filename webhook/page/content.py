"""What the page shows, as one value: gathered at each request, from what this process knows anyway."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from webhook.readmodel.posture import Posture
from webhook.readmodel.preemptions import Preemption
from webhook.readmodel.tenants import TenantShown
from webhook.readmodel.verdicts import VerdictShown

SHOWN = 100
"""Verdicts, and preemptions, the latest first: to render a page takes the time of reviews."""


@dataclass(frozen=True, slots=True)
class PageContent:
    """`health` has what is wrong with each thing that is checked, "" where nothing is.

    `leader` is the replica that leads, "" where none does, and `forward` the command that opens its page.
    """

    replica: str
    leads: bool
    leader: str
    forward: str
    health: Mapping[str, str]
    posture: Posture
    tenants: Sequence[TenantShown]
    verdicts: Sequence[VerdictShown]
    preemptions: Sequence[Preemption]


@dataclass(frozen=True, slots=True)
class Sources:
    """Where each part comes from, asked at each request."""

    replica: str
    leads: Callable[[], bool]
    leader: Callable[[], str]
    forward: Callable[[str], str]
    health: Callable[[], Mapping[str, str]]
    posture: Callable[[], Posture]
    tenants: Callable[[], Sequence[TenantShown]]
    verdicts: Iterable[VerdictShown]
    preemptions: Iterable[Preemption]

    def content(self) -> PageContent:
        """All of it, as it is now."""
        leader = self.leader()
        return PageContent(
            self.replica,
            self.leads(),
            leader,
            self.forward(leader) if leader else "",
            self.health(),
            self.posture(),
            self.tenants(),
            tuple(islice(self.verdicts, SHOWN)),
            tuple(islice(self.preemptions, SHOWN)),
        )
