"""What the fields of an object of an unknown kind say: whether it asks for GPUs, what it runs, in which image.

Only the names of the fields can tell, and every author has others.
"""

import re
from collections.abc import Iterator

_RUNS = ("command", "args", "cmd", "entrypoint", "script", "steps", "run", "program")
_ASKED = frozenset({"limits", "requests"})
_PLACEMENT = frozenset({"affinity", "nodeSelector", "tolerations"})
_GPU_FIELD = re.compile(
    r"(?i)(?:num|number_?of|n|min|max|total)?_?gpus?_?(?:count|num|number|limit|request|quantity|per_?\w{1,20})?"
    r"|[\w.-]+/(?:gpu|mig-)[\w.-]*"
)
_GPU_NAME = re.compile(r"/.*(?:gpu|mig-)")
_MACHINE_FIELD = re.compile(r"(?i)(?:instance|machine|node|vm)_?(?:type|size|flavor)")
_GPU_MACHINE = re.compile(
    r"(?:ml\.)?(?:p[2-6]\w*|g[3-7]\w*|gr6\w*|trn\w*|inf\w*)\.\w+|Standard_N[CDV]\w+|a[234]-\w*gpu|g[24]-standard"
)
"""Of the three large clouds: g5.xlarge, Standard_NC24ads_A100_v4, a3-highgpu-8g."""
_RUNS_WHAT = re.compile(r"(?i)\w*image|models?|model_?(?:id|ref|name|uri)")
_ENGINES = ("image", "engine", "runtime", "backend", "framework")


def _fields(node: object) -> Iterator[tuple[str, object]]:
    """All fields at any depth, but for those that only say where to run."""
    if isinstance(node, dict):
        for field, value in node.items():
            if field not in _PLACEMENT:
                yield str(field), value
                yield from _fields(value)
    elif isinstance(node, list):
        for item in node:
            yield from _fields(item)


def asks_by_field(tree: object) -> bool:
    """Whether a field at any depth is `gpus: 2`, `gpusPerNode: 8`, `gpu: {count: 1}` or a machine with GPUs.

    It must have an image, a model or a container's resources as well: else it may be a quota or a pool of nodes.
    """
    fields = list(_fields(tree))
    return any(_asks(*each) for each in fields) and any(_runs(*each) for each in fields)


def _runs(field: str, value: object) -> bool:
    of_container = field.startswith("resource") and isinstance(value, dict) and not value.keys().isdisjoint(_ASKED)
    return of_container or _RUNS_WHAT.fullmatch(field) is not None


def _asks(field: str, value: object) -> bool:
    if _MACHINE_FIELD.fullmatch(field):
        return isinstance(value, str) and _GPU_MACHINE.match(value) is not None
    if isinstance(value, dict):
        return "gpu" in field.lower() and _is_positive(value)
    return _GPU_FIELD.fullmatch(field) is not None and _is_positive(value)


def gpu_resources(tree: object) -> tuple[str, ...]:
    """The names of resources with a domain that requests or limits ask for, and that call themselves GPUs."""
    asked = [value for field, value in _fields(tree) if field in _ASKED and isinstance(value, dict)]
    return tuple(dict.fromkeys(str(name) for each in asked for name in each if _GPU_NAME.search(str(name))))


def says_all(tree: object) -> bool:
    """Whether a container's own resources say what it asks for, and no devices: a client of what has the GPUs."""
    asked = [value for field, value in _fields(tree) if field == "resources" and isinstance(value, dict)]
    named = [each.get(part) for each in asked for part in _ASKED if isinstance(each.get(part), dict)]
    return bool(named) and not any("/" in str(name) for each in named if each for name in each)


def runs_in(tree: object) -> list[str]:
    """Texts that may be commands, wherever they stand."""
    return [text for field, value in _fields(tree) if field in _RUNS for text in _texts(value)]


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _texts(each)


def packed_in(tree: object) -> str:
    """The image, or what an object without one says of it: its engine, its runtime."""
    for field, value in sorted(_fields(tree), key=lambda each: each[0] != "image"):
        if field in _ENGINES:
            told = (value.get("type") or value.get("name")) if isinstance(value, dict) else value
            if isinstance(told, str):
                return told
    return ""


def _is_positive(value: object) -> bool:
    """Also of `gpu: {count: 1, type: l4}`."""
    if isinstance(value, dict):
        return any(_is_positive(value.get(field)) for field in ("count", "quantity", "limit", "number"))
    return str(value).isdecimal() and int(str(value)) > 0
