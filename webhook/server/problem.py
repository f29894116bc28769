"""What goes wrong with a request, as an HTTP status and a text for whoever reads the API server's log."""


class Problem(Exception):  # noqa: N818 - an answer, not a malfunction
    """Ends a request without a review. `closes`: its body is unread, so the connection can't be used again."""

    def __init__(self, status: int, text: str, *, closes: bool = False) -> None:
        super().__init__(text)
        self.status = status
        self.closes = closes


class Disconnected(Exception):  # noqa: N818 - nobody is left to tell
    """The client closed the connection before its request was read."""
