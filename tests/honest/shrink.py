"""Makes a failing history small: fewer actions, then fewer tenants and nodes, then less time."""

from collections.abc import Callable, Iterator
from typing import Any

from tests.honest.history import run

History = dict[str, Any]


def shrunk(history: History, signature: str, tries: int = 60) -> History:
    """Return a smaller history that fails with the same signature, found by running so many at most."""
    left = [tries]

    def fails(candidate: History) -> bool:
        if left[0] <= 0:
            return False
        left[0] -= 1
        return any(each.signature == signature for each in run(candidate).failures)

    best = _with_fewer_actions(history, fails)
    for candidate in _simpler(best):
        if candidate != best and fails(merged := {**best, **candidate}):
            best = merged
    for number in range(len(best["actions"])):
        at_once = [{**each, "t": 0} if n == number else each for n, each in enumerate(best["actions"])]
        if at_once != best["actions"] and fails({**best, "actions": at_once}):
            best = {**best, "actions": at_once}
    return best


def _with_fewer_actions(history: History, fails: Callable[[History], bool]) -> History:
    best, size = history, max(len(history["actions"]) // 2, 1)
    while size:
        start, cut = 0, False
        while start < len(best["actions"]):
            fewer = [*best["actions"][:start], *best["actions"][start + size :]]
            if fewer and fails({**best, "actions": fewer}):
                best, cut = {**best, "actions": fewer}, True
            else:
                start += size
        size = size if cut and size == 1 else size // 2
    return best


def _simpler(history: History) -> Iterator[History]:
    first = history["tenants"][0]
    yield {
        "tenants": [first],
        "namespaces": {name: tenant for name, tenant in history["namespaces"].items() if tenant == first["name"]},
    }
    yield {"flavors": [], "nodes": [(8, None)] * 4}
    yield {"latency": 0, "lag": 0}
    for number in range(len(first["rows"])):
        rows = [row for n, row in enumerate(first["rows"]) if n != number]
        yield {"tenants": [{**first, "rows": rows}, *history["tenants"][1:]]} if rows else {}
