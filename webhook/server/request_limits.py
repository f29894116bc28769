"""How much a client may send, and for how long: every limit of the server in one place."""

import msgspec

MIB = 1024 * 1024


class Limits(msgspec.Struct, frozen=True):
    """Sizes in bytes, times in seconds."""

    body_bytes: int = 20 * MIB
    """The API server takes requests of 3 MiB and stores objects of 1.5 MiB. In a review a byte may take six (`<` is
    \\u003c): 18 MiB for the one object of a CREATE, or the two of an UPDATE. What is larger can't be stored."""
    small_body_bytes: int = 64 * 1024
    """Bodies up to this size wait for nobody; so much is buffered of any request."""
    bodies_bytes: int = 64 * MIB
    """All larger bodies together that are being read or judged. Others wait until these have their answers."""
    bodies_waiting: int = 32
    """Larger bodies that may wait; of each some 300 KiB are buffered."""
    message_bytes: int = 32 * MIB
    """Everything read of one request, what is thrown away included; then the connection is cut."""
    headers_bytes: int = 64 * 1024
    pipelined: int = 8
    """Requests that may wait behind one that is being answered. Go clients never pipeline; uvicorn has no bound."""
    headers_seconds: float = 10.0
    """From the first byte of a request to the end of its headers."""
    body_seconds: float = 5.0
    review_seconds: float = 5.0
    """The longest a review may take, however long the API server says it would wait."""
    margin_seconds: float = 0.25
    """Answer this much before the API server gives up, so that it reads a reason and not a broken connection."""
    linger_seconds: float = 1.0
    """How long a refused body is still read and thrown away: closing at once would destroy the refusal's text."""
    unread_seconds: float = 30.0
    """How long a client may leave our answer unread."""
    handshake_seconds: float = 10.0
    keep_alive_seconds: float = 120.0
    """Above the 90 s for which Go clients, the API server among them, keep an idle connection."""
    stop_seconds: float = 10.0
    """How long requests under way may take once the server stops."""
    connections: int = 2000
    """Beyond these, requests are answered 503: an API server keeps 25 idle connections, and one a request."""
    strangers: int = 1000
    """Of these, the ones that have asked for no review yet. Beyond, the oldest is cut: an API server asks at once."""
