"""Numbers that are yet to be filled in, by envsubst or by hand: `nvidia.com/gpu: $GPU_PER_NODE`.

Each is taken as its default, else as 1.
"""

import re
from typing import Any

Tree = dict[str, Any]

_PLACEHOLDER = re.compile(r"\${1,2}\w+|\$\{\w+(?::?-[^{}]*)?\}|<[^<>]{1,60}>|_{0,2}[A-Z][A-Z0-9_]{2,63}")
_DEFAULT = re.compile(r":-(\d{1,9})\}$")
_QUANTITIES = frozenset({"limits", "requests"})
_NUMBER = re.compile(r"(?i)\w*(?:replicas|parallelism|completions|instances|nodes|hosts|size|port|seconds)")
"""Fields that hold a whole number wherever they stand."""


def filled(tree: Tree) -> tuple[Tree, tuple[str, ...]]:
    """The object with its numbers filled in, and what stood there; the same object if there was nothing to fill in."""
    met: dict[str, None] = {}
    made = _filled(tree, met)
    return (made, tuple(met)) if met else (tree, ())


def _filled(node: Any, met: dict[str, None], *, quantities: bool = False) -> Any:
    if isinstance(node, list):
        return [_filled(item, met) for item in node]
    if not isinstance(node, dict):
        return node
    made = {}
    for field, value in node.items():
        if isinstance(value, str) and (quantities or _NUMBER.fullmatch(str(field))) and _PLACEHOLDER.fullmatch(value):
            met[value] = None
            default = _DEFAULT.search(value)
            made[field] = int(default.group(1)) if default else 1
        else:
            made[field] = _filled(value, met, quantities=field in _QUANTITIES)
    return made
