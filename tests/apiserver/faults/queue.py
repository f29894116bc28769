"""Judge a queue: who waits although there is room, and which gangs run only in part."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import Any

from .books import gpus_of_pods, is_gated, usage_of
from .plan import Plan, Team

Tree = dict[str, Any]
Row = str | None


@dataclass(frozen=True)
class Waiting:
    """A queued unit: a pod, or a gang. `turn` sorts by tier, then by when the pod or the gang's Job was made."""

    team: Team
    name: str
    turn: tuple[int, str]
    tier: str
    gpus: int

    @property
    def rows(self) -> dict[Row, int]:
        """Return the rows on which it counts."""
        return {row: hard for row, hard in self.team.rows.items() if row in (None, self.tier)}

    def missing(self, usage: Mapping[Row, int]) -> dict[Row, int]:
        """GPUs that it lacks on its rows; none where there is room."""
        lacks = {row: usage[row] + self.gpus - hard for row, hard in self.rows.items()}
        return {row: gpus for row, gpus in lacks.items() if gpus > 0}


class QuotaRows:
    """The rows of all tenants, as far as they are used or reserved for those who were asked about before."""

    def __init__(self, usage: Mapping[str, Counter[Row]]) -> None:
        self._usage = usage
        self._reserved = set[tuple[str, Row]]()

    def goes_before(self, each: Waiting) -> bool:
        """Return whether nobody waits before it for one of its rows."""
        return not any((each.team.name, row) in self._reserved for row in each.rows)

    def has_room(self, each: Waiting) -> bool:
        """Return whether it could go."""
        return self.goes_before(each) and not each.missing(self._usage[each.team.name])

    def reserve(self, each: Waiting) -> None:
        """Take its rows that lack room, and reserve of the total what exceeds the GPUs that end on its tier's row."""
        usage = self._usage[each.team.name]
        short = each.missing(usage) if self.goes_before(each) else {}
        self._reserved |= {(each.team.name, row) for row in short}
        for row in each.rows.keys() - short if short else ():
            usage[row] += max(each.gpus - (short[each.tier] if row is None else 0), 0)


def left_gated(plan: Plan, pods: Iterable[Tree], jobs: Iterable[Tree] = ()) -> Iterator[str]:
    """Yield who waits although there is room and nobody older waits for it; pods of the same age may go first."""
    pods = list(pods)
    units = _units(pods)
    yield from _in_part(units)
    line = QuotaRows(usage_of(plan, pods))
    made = {_name(each["metadata"]): each["metadata"]["creationTimestamp"] for each in jobs}
    waiting = [_waiting(plan, name, unit, made) for name, unit in units.items() if all(map(is_gated, unit))]
    for _, some in groupby(sorted(waiting, key=attrgetter("turn")), attrgetter("turn")):
        alike = list(some)
        for each in alike:
            line.reserve(each)
        for each in filter(line.has_room, alike):
            yield f"{each.name} of {each.gpus} on {each.tier} waits, and there is room"


def _units(pods: Iterable[Tree]) -> dict[str, list[Tree]]:
    """The pods of each gang, and those that are alone, by what they are."""
    found: dict[str, list[Tree]] = {}
    for pod in pods:
        metadata = pod["metadata"]
        (named,) = metadata.get("ownerReferences") or (metadata,)
        found.setdefault(f"{metadata['namespace']}/{named['name']}", []).append(pod)
    return found


def _in_part(units: Mapping[str, list[Tree]]) -> Iterator[str]:
    for name, unit in units.items():
        gated = sum(map(is_gated, unit))
        if 0 < gated < len(unit):
            yield f"{name}: {gated} of {len(unit)} pods wait, and the others don't"


def _name(metadata: Tree) -> str:
    return f"{metadata['namespace']}/{metadata['name']}"


def _waiting(plan: Plan, name: str, pods: list[Tree], made: Mapping[str, str]) -> Waiting:
    is_gang = bool(pods[0]["metadata"].get("ownerReferences"))
    first = min(each["metadata"]["creationTimestamp"] for each in pods)
    since = made.get(name, first) if is_gang else first
    (tier, _), gpus = gpus_of_pods(pods[0]), sum(gpus_of_pods(each)[1] for each in pods)
    team = plan.team_of(pods[0]["metadata"]["namespace"])
    return Waiting(team, name, (-pods[0]["spec"]["priority"], since), tier, gpus)
