"""The pods that a controller could not create, from its events: why, since when, and when it tries again."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any

from webhook.readmodel.shown import Shown

Tree = dict[str, Any]

REASONS = ("FailedCreate", "OverQuota", "Refused")
"""Kubernetes' controllers say the first, gpu-tiers the others."""

LONGEST_WAIT: Mapping[str, timedelta] = MappingProxyType({"Job": timedelta(minutes=1)})
ANY_LONGEST_WAIT = timedelta(seconds=1000)
"""How long a controller waits at most between two tries (docs/tenants.md#when-controllers-try-again)."""
SHORTEST_WAIT = timedelta(seconds=1)
AT_ONCE = timedelta(minutes=1)
"""What a controller and gpu-tiers tell within this time is told of the same: the controller's own word counts."""

_OURS = 'gpu-tiers.dev" denied'
_DENIED = " denied the request: "


class RefusedPods(Shown, frozen=True):
    """What was refused to a controller. `tries_again`: when it should have tried again at the latest.

    `ours`: gpu-tiers has refused it, and not a ResourceQuota or another webhook.
    """

    controller: str
    sentence: str
    times: int
    since: datetime
    last: datetime
    tries_again: datetime
    ours: bool = True

    @property
    def controller_kind(self) -> str:
        """The kind of what was refused."""
        return self.controller.partition("/")[0]

    def said(self, now: datetime) -> str:
        """When it was refused, and when its controller tries again."""
        told = f"{self.controller} was refused {_often(self.times)}, {_ago(now - self.last)} the last time."
        if self.tries_again <= now:
            return f"{told} It may try again at any moment."
        return f"{told} It tries again by itself, within {_long(self.tries_again - now)} or so."


def refused_pods(events: Iterable[Tree]) -> RefusedPods | None:
    """The newest of the events that tell of a refusal; None where none does.

    Controllers wait twice as long after each try, so the next wait is about as long as all before it.
    """
    found = sorted(_told(events), key=lambda each: each[0])
    if not found:
        return None
    newest = [each for each in found if found[-1][0] - each[0] <= AT_ONCE]
    last, first, event = next((each for each in reversed(newest) if each[2].get("reason") == REASONS[0]), found[-1])
    about = event.get("involvedObject") or {}
    longest = LONGEST_WAIT.get(about.get("kind", ""), ANY_LONGEST_WAIT)
    message = str(event.get("message") or "")
    return RefusedPods(
        controller=f"{about.get('kind')}/{about.get('name')}",
        sentence=message.partition(_DENIED)[2] or message,
        times=_count(event),
        since=first,
        last=last,
        tries_again=last + min(max(last - first, SHORTEST_WAIT), longest),
        ours=event.get("reason") != REASONS[0] or _OURS in message,
    )


def _told(events: Iterable[Tree]) -> Iterator[tuple[datetime, datetime, Tree]]:
    for event in events:
        series = event.get("series") or {}
        last = _time(series.get("lastObservedTime") or event.get("lastTimestamp") or event.get("eventTime"))
        if event.get("reason") in REASONS and last is not None:
            yield last, _time(event.get("firstTimestamp") or event.get("eventTime")) or last, event


def _count(event: Tree) -> int:
    counted = (event.get("series") or {}).get("count") or event.get("count")
    return counted if isinstance(counted, int) else 1


def _time(text: object) -> datetime | None:
    try:
        found = datetime.fromisoformat(str(text))
    except ValueError:
        return None
    return found if found.tzinfo else None


def _often(times: int) -> str:
    return "once" if times == 1 else f"{times} times"


def _ago(passed: timedelta) -> str:
    return f"{_long(passed)} ago"


def _long(time: timedelta) -> str:
    """Such as: 40 seconds, 3 minutes, 5 hours."""
    seconds = max(round(time.total_seconds()), 1)
    for size, unit in ((86400, "day"), (3600, "hour"), (60, "minute"), (1, "second")):
        if seconds >= size * (2 if size > 1 else 1):
            number = round(seconds / size)
            return f"{number} {unit}{'s' if number > 1 else ''}"
    return "1 second"
