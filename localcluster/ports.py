"""Finds free TCP ports on the loopback address. They are not held open."""

import secrets
import socket

# Below the range that systems give to outgoing connections (32768 and up on Linux): those come and go all the time.
FIRST, LAST = 20000, 32000


def free_ports(count: int) -> list[int]:
    """Return different ports of 127.0.0.1 that nobody listens on at this moment, picked at random."""
    ports: list[int] = []
    while len(ports) < count:
        port = FIRST + secrets.randbelow(LAST - FIRST)
        if port not in ports and is_free(port):
            ports.append(port)
    return ports


def is_free(port: int) -> bool:
    """Whether one could listen on it now."""
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
