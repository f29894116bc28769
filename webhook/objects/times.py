"""Times of objects, which Kubernetes writes as RFC 3339."""

from datetime import datetime


def unix_seconds(time: str | None) -> float | None:
    """Return a time in seconds since 1970; None for none, or for a text that is no time with a zone."""
    try:
        found = datetime.fromisoformat(time or "")
    except ValueError:
        return None
    return found.timestamp() if found.tzinfo else None
