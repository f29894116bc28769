"""Finds free TCP ports on the loopback address, without reserving them."""

import os
import secrets
import socket
from collections.abc import Iterator
from itertools import islice

# Below the range that systems give to outgoing connections (32768 and up on Linux): those come and go all the time.
FIRST, LAST = 20000, 32000
OWN = 100
"""How many ports a process looks at first. Without such ports of their own, two processes that start clusters at one
time would now and then find the same ports, before one of them listens."""


_given: set[int] = set()
"""Ports that this process was given: whoever is to listen on one may not do so yet."""


def free_ports(count: int) -> list[int]:
    """Return `count` ports of 127.0.0.1 that nobody listens on now; this process gets none of them twice."""
    found = list(islice((port for port in _candidates() if port not in _given and is_free(port)), count))
    _given.update(found)
    return found


def _candidates() -> Iterator[int]:
    begin = FIRST + os.getpid() * OWN % (LAST - FIRST)
    own = range(begin, begin + OWN)
    yield from secrets.SystemRandom().sample(own, OWN)
    yield from secrets.SystemRandom().sample(
        [port for port in range(FIRST, LAST) if port not in own], LAST - FIRST - OWN
    )


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
