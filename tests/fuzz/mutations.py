"""Ways to spoil a review: its tree, and the bytes that it travels as."""

import copy
import json
from collections.abc import Callable
from random import Random
from typing import Any

from tests.fuzz.seeds import at, by_key

ODD: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 2**31, 2**53 + 1, 2**64, 10**400, 1.5, -0.0, 1e308, float("inf"), float("nan")),
    *(
        "",
        " ",
        "-1",
        "1e400",
        "0x10",
        "1k",
        "16Ei",
        "1.",
        ".5",
        "\uff11",
        "NaN",
        "null",
        "\x00",
        "\x1b[31m",
        "\u202e",
        "\ud800",
    ),
    *(
        "\ufeff",
        "é" * 63,
        "a" * 300,
        "9" * 5_000,
        "x" * 20_000,
        "~1/~0",
        "../..",
        "${HOME}",
        "gpu-training",
        "nvidia.com/gpu",
        "{}",
        "[1]",
    ),
    *([], {}, [None], [[]], [{}], {"": ""}, {"x": None}, {"\x00": 1}),
)
OURS = (
    *("tier", "checkpoint", "checkpoint-timeout", "checkpoint-port", "checkpoint-command", "checkpoint-signal"),
    *("checkpoint-path", "checkpoint-done-file", "assigned-by", "workload-type", "gang", "claimed", "teir"),
)
MOST_ADDED = 300_000
"""Bytes that a list or a map grows by, at most."""


class Twin(str):
    """A key that equals none but itself, so that JSON has it twice."""

    __slots__ = ()
    __hash__ = object.__hash__
    __eq__ = object.__eq__


def spoiled(random: Random, review: bytes) -> bytes:
    """A review after one to six mutations; as it was where it came to hold itself, or is nested too deep."""
    tree = json.loads(review)
    try:
        for _ in range(random.choice((1, 1, 2, 3, 6))):
            random.choice(TREE)(random, tree)
        body = json.dumps(tree, ensure_ascii=random.random() < 0.5).encode("utf-8", "surrogatepass")
    except (RecursionError, ValueError):
        return review
    return random.choice(BYTES)(random, body) if random.random() < 0.1 else body


def _places(tree: Any, kind: type | tuple[type, ...] = object) -> list[tuple[Any, ...]]:
    """Return the places of values of this kind below the request; of a review that grew, only the first ones."""
    found: list[tuple[Any, ...]] = []
    waiting = [(("request",), tree["request"])]
    while waiting and len(found) < 5_000:
        place, value = waiting.pop()
        if len(place) > 1 and isinstance(value, kind):
            found.append(place)
        items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        waiting += [((*place, key), each) for key, each in items]
    return found


def _set(tree: Any, place: tuple[Any, ...], value: Any) -> None:
    at(tree, place[:-1])[place[-1]] = value


def odd_value(random: Random, tree: Any) -> None:
    if places := _places(tree):
        _set(tree, random.choice(places), copy.deepcopy(random.choice(ODD)))


def anothers_value(random: Random, tree: Any) -> None:
    """Return a value of the same key elsewhere, or of another key."""
    if places := [place for place in _places(tree) if isinstance(place[-1], str)]:
        place = random.choice(places)
        known = by_key().get(place[-1]) if random.random() < 0.8 else None
        _set(tree, place, copy.deepcopy(random.choice(known or by_key()[random.choice(list(by_key()))])))


def one_more_field(random: Random, tree: Any) -> None:
    if places := _places(tree, dict):
        key = random.choice(list(by_key()))
        at(tree, random.choice(places))[key] = copy.deepcopy(random.choice(by_key()[key]))


def one_less(random: Random, tree: Any) -> None:
    if places := _places(tree):
        place = random.choice(places)
        del at(tree, place[:-1])[place[-1]]


def other_type(random: Random, tree: Any) -> None:
    """The same content as another type would carry it."""
    if places := _places(tree):
        place = random.choice(places)
        value = at(tree, place)
        forms: tuple[Callable[[Any], Any], ...] = (
            lambda it: [it],
            lambda it: {"x": it},
            lambda it: json.dumps(it, default=str)[:1000],
            lambda it: (
                dict(enumerate(it)) if isinstance(it, list) else list(it.values()) if isinstance(it, dict) else it
            ),
            lambda it: len(it) if isinstance(it, str | list | dict) else str(it),
        )
        _set(tree, place, random.choice(forms)(value))


def many(random: Random, tree: Any) -> None:
    """A list or a map with hundreds of what is in it."""
    if places := _places(tree, (list, dict)):
        container = at(tree, random.choice(places))
        times = min(random.choice((3, 3, 3, 50, 50, 400, 1_500)), MOST_ADDED // len(json.dumps(container)))
        if isinstance(container, list) and container:
            container += [copy.deepcopy(random.choice(container)) for _ in range(times)]
        elif isinstance(container, dict) and container:
            container |= {
                f"{key}{number}": copy.deepcopy(container[key])
                for number, key in enumerate(random.choices(list(container), k=times))
            }


def deep(random: Random, tree: Any) -> None:
    if places := _places(tree):
        value: Any = None
        for _ in range(random.choice((10, 100, 200))):
            value = [value] if random.random() < 0.5 else {"spec": value}
        _set(tree, random.choice(places), value)


def twice(random: Random, tree: Any) -> None:
    """A key that stands twice."""
    if places := [place for place in _places(tree) if isinstance(place[-1], str)]:
        place = random.choice(places)
        at(tree, place[:-1])[Twin(place[-1])] = copy.deepcopy(random.choice((*ODD, at(tree, place))))


def other_key(random: Random, tree: Any) -> None:
    """A key in other letters, or with something beside it."""
    if places := [place for place in _places(tree) if isinstance(place[-1], str)]:
        place = random.choice(places)
        holder, key = at(tree, place[:-1]), place[-1]
        holder[random.choice((key.upper(), key.title(), f" {key}", f"{key}\x00", key[::-1], "é" + key))] = holder.pop(
            key
        )


def our_words(random: Random, tree: Any) -> None:
    """A label or an annotation of ours, on whatever has metadata."""
    places = [place for place in _places(tree, dict) if "metadata" in at(tree, place)]
    for place in random.sample(places, min(len(places), 1)):
        metadata = at(tree, place)["metadata"]
        if isinstance(metadata, dict):
            container = metadata.setdefault(random.choice(("labels", "annotations")), {})
            if isinstance(container, dict):
                word = f"gpu-tiers.dev/{random.choice(OURS)}"
                container[word] = random.choice((*by_key().get(word, ()), *ODD, "gpu-batch", "30", "exec", "serving"))


def other_request(random: Random, tree: Any) -> None:
    """Another operation, subresource, user or old object."""
    request = tree["request"]
    if not isinstance(request, dict):
        return
    changes: tuple[dict[str, Any], ...] = (
        {"operation": "UPDATE", "oldObject": copy.deepcopy(request.get("object"))},
        {"operation": random.choice(("DELETE", "CONNECT", "create", "", None))},
        {"subResource": random.choice(("scale", "status", "ephemeralcontainers", "resize", ""))},
        {"dryRun": random.choice((True, None, "true"))},
        {"namespace": random.choice(("kube-system", "team-beta", "nowhere", "", "é"))},
        {"kind": random.choice(by_key()["kind"])},
        {"userInfo": {"username": "system:node:gpu-0", "groups": ["system:nodes"]}},
    )
    request |= random.choice(changes)


def flipped(random: Random, body: bytes) -> bytes:
    place = random.randrange(len(body))
    return body[:place] + bytes([random.randrange(256)]) + body[place + 1 :]


def cut(random: Random, body: bytes) -> bytes:
    return body[: random.randrange(len(body))]


def doubled(random: Random, body: bytes) -> bytes:
    begin, end = sorted(random.choices(range(len(body)), k=2))
    return body[:end] + body[begin:]


def other_encoding(random: Random, body: bytes) -> bytes:
    forms = (
        b"\xef\xbb\xbf" + body,
        body.decode("utf-8", "replace").encode("utf-16"),
        b" " * 100 + body,
        body + b"\x00",
    )
    return random.choice(forms)


TREE = (
    *(odd_value, odd_value, anothers_value, anothers_value, anothers_value, one_more_field, one_less, other_type),
    *(many, deep, twice, other_key, our_words, our_words, other_request),
)
BYTES = (flipped, cut, doubled, other_encoding)
