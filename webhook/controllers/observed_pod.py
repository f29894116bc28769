"""A pod that exists, as the replica that leads keeps it, with what its resource claims ask for."""

from collections.abc import Mapping

import msgspec

from webhook.ledger.protocol import Holding
from webhook.policy.workloads.workload import Devices
from webhook.report.gpus_now import WaitingPod


class Claimed(msgspec.Struct, frozen=True):
    """What counts of what a pod's claims ask for, and of each ResourceClaim that it names, by namespace/name.

    `unread`: what one of them asks for was never known. `passing`: because it can't be read now; else it does not
    exist, and the pod holds nothing by it.
    """

    devices: tuple[Devices, ...] = ()
    claims: Mapping[str, tuple[Devices, ...]] = msgspec.field(default_factory=dict)
    unread: bool = False
    passing: bool = False


NO_CLAIMS = Claimed()


class ObservedPod(msgspec.Struct, frozen=True):
    """A pod that counts or has resource claims, as an event or a read showed it.

    `holding` is on the flavor that the pod names, and None while nothing of it counts. `node` is "" until the pod is
    `bound`, at that time in RFC 3339; until then it `waits`. `work_since`: since when it has work to lose, in seconds
    since 1970; None: it has none.
    """

    namespace: str
    name: str
    claimed: Claimed = NO_CLAIMS
    holding: Holding | None = None
    node: str = ""
    waits: WaitingPod | None = None
    work_since: float | None = None
    bound: str = ""
