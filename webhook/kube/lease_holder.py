"""Who holds a Lease, by when it was seen to change: the clocks of two machines are never compared."""

import time
from collections.abc import Callable

from webhook.kube.wire import Tree


class LeaseHolder:
    """Whoever renews the Lease; nobody once it was not seen to change for as long as it lasts."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._spec: Tree = {}
        self._changed = clock()

    def see(self, spec: Tree) -> None:
        """Take the Lease's spec as it was read or written: each renewal changes its renewTime."""
        if spec != self._spec:
            self._spec, self._changed = spec, self._clock()

    @property
    def name(self) -> str:
        """The holder's identity, "" for nobody."""
        lasts: float = self._spec.get("leaseDurationSeconds") or 0
        held = self._clock() - self._changed < lasts
        return (self._spec.get("holderIdentity") or "") if held else ""
