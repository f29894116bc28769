"""What a suite names that is no file, found in the tree as it was written, so that it is told beside other mistakes."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from webhook.config.errors import field_path

Place = tuple[int | str, ...]
"""The way to a field from the top of a suite."""


def missing_files(folder: Path, tree: dict[str, Any]) -> Iterator[tuple[Place, str]]:
    """Each path that leads nowhere in a sentence, with the field's place. Paths start at the folder."""
    for place, name in _paths(tree):
        if name and isinstance(name, str) and not os.path.exists(folder / name):  # noqa: PTH110 - any name at all
            yield place, f"{field_path(place)}: {folder / name}: there is no such file or folder"


def _paths(tree: dict[str, Any]) -> Iterator[tuple[Place, object]]:
    yield ("policy",), tree.get("policy")
    for number, name in enumerate(_list(tree.get("tenants"))):
        yield ("tenants", number), name
    for number, case in enumerate(_list(tree.get("cases"))):
        yield ("cases", number, "workload"), case.get("workload") if isinstance(case, dict) else None


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
