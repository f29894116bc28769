"""Times of objects, which Kubernetes writes as RFC 3339, and periods of the calendar."""

from datetime import UTC, date, datetime, timedelta
from functools import cache
from typing import Literal
from zoneinfo import ZoneInfo, available_timezones


def unix_seconds(time: str | None) -> float | None:
    """Return a time in seconds since 1970; None for None, or for a text that is no time with a zone."""
    try:
        found = datetime.fromisoformat(time or "")
    except ValueError:
        return None
    return found.timestamp() if found.tzinfo else None


def rfc3339(time: float, *, exact: bool = False) -> str:
    """Return a time in seconds since 1970 as objects have it, to the second, or `exact` to the millisecond."""
    found = datetime.fromtimestamp(time, UTC)
    return f"{found:%Y-%m-%dT%H:%M:%S}" + (f".{found.microsecond // 1000:03}Z" if exact else "Z")


def date_text(time: float, zone: str) -> str:
    """Return a time as people read it: 1 December 2026, 00:00 Europe/Berlin."""
    found = datetime.fromtimestamp(time, ZoneInfo(zone))
    return f"{found.day} {found:%B %Y, %H:%M} {zone}"


@cache
def is_time_zone(name: str) -> bool:
    """Tell whether the IANA database has a zone of that name. Listing its names reads hundreds of files."""
    return name in available_timezones()


def calendar_period(per: Literal["Day", "Week", "Month", "Quarter"], zone: str, time: float) -> tuple[float, float]:
    """Return when the period around a time begins and ends, at midnight in a time zone. A week begins on Monday."""
    today = datetime.fromtimestamp(time, ZoneInfo(zone)).date()
    match per:
        case "Day":
            first, after = today, today + timedelta(days=1)
        case "Week":
            first = today - timedelta(days=today.weekday())
            after = first + timedelta(days=7)
        case "Month" | "Quarter":
            months = 1 if per == "Month" else 3
            first = today.replace(month=today.month - (today.month - 1) % months, day=1)
            year, month = divmod(first.year * 12 + first.month - 1 + months, 12)
            after = date(year, month + 1, 1)
    begins, ends = (datetime(each.year, each.month, each.day, tzinfo=ZoneInfo(zone)) for each in (first, after))
    return begins.timestamp(), ends.timestamp()
