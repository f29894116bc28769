"""The listener as it travels: two texts that a pod gets as files, joined from the modules of `listener/`.

Why joined: Python finds one file beside sitecustomize.py without a package, and a person reads it from top to bottom.
"""

import ast
import functools
from collections import defaultdict
from collections.abc import Iterable, Mapping
from importlib import resources

MODULES = (
    "protocol",
    "progress",
    "report",
    "mark",
    "volatile",
    "agree",
    "resume",
    "end",
    "attach",
    "huggingface",
    "replay",
    "lightning",
)
"""In the order in which they are read: each uses what stands above it."""
START = "sitecustomize.py"
LISTENER = "gpu_tiers_listen.py"
HEAD = '''\
"""gpu-tiers: saves a training that knows nothing of it when its pod's hook asks, ends it with 143, and resumes it.

sitecustomize.py beside it loads it when the program imports a trainer. A fault in here is said in one line on stderr,
and the training goes on as without it.
"""

from __future__ import annotations
'''


@functools.cache
def listener_texts() -> Mapping[str, str]:
    """File name to text: what lies in the folder that stands first on a training's PYTHONPATH."""
    return {START: _source(START), LISTENER: joined((name, _source(f"{name}.py")) for name in MODULES)}


def _source(name: str) -> str:
    return resources.files("listener").joinpath(name).read_text(encoding="utf-8")


def joined(modules: Iterable[tuple[str, str]]) -> str:
    """One module of several: their imports once, then each under its name and what it says of itself."""
    imports: defaultdict[str, set[str]] = defaultdict(set)
    parts = []
    for name, text in modules:
        tree = ast.parse(text)
        end = 1
        for each in tree.body:
            if isinstance(each, ast.Import | ast.ImportFrom):
                end = (each.end_lineno or 0) + 1
                _gather(each, imports)
        says = (ast.get_docstring(tree) or "").partition("\n\n")[0].splitlines()  # the source says why, too
        parts.append([f"# ---- {name}", *(f"# {line}".rstrip() for line in says), "", *text.splitlines()[end - 1 :]])
    bodies = ("\n".join(part).rstrip() for part in parts)
    return "\n\n\n".join([HEAD + "\n" + "\n".join(_written(imports)), *bodies]) + "\n"


def _gather(each: ast.Import | ast.ImportFrom, imports: defaultdict[str, set[str]]) -> None:
    """What the joined text has to import; what comes from its own modules stands in it."""
    if isinstance(each, ast.Import):
        for name in each.names:
            imports[name.name]
    elif each.module != "__future__" and not (each.module or "").startswith("listener."):
        imports[each.module or ""].update(name.name for name in each.names)


def _written(imports: Mapping[str, set[str]]) -> list[str]:
    whole = [f"import {name}" for name, names in sorted(imports.items()) if not names]
    return whole + [
        f"from {name} import {', '.join(sorted(names))}" for name, names in sorted(imports.items()) if names
    ]
