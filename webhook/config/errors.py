"""What is wrong with a policy file: every problem at once, each with the field's path."""

import re
from collections.abc import Iterable

from pydantic_core import ErrorDetails


class ConfigError(Exception):
    """A file that can't be used. `problems` are sentences, each starting with the field's path."""

    def __init__(self, source: str, problems: Iterable[str]) -> None:
        self.source = source
        self.problems = tuple(problems)
        super().__init__("\n".join(f"{source}: {problem}" for problem in self.problems))


def sentence(error: ErrorDetails) -> str:
    """One pydantic error as a person reads it: `tiers[1].value: 2000000000: should be at most 1000000000`."""
    where, given = _path(error["loc"]), error["input"]
    if error["type"] == "extra_forbidden":
        return f"{where}: there is no such field"
    if error["type"] == "missing":
        return f"{where}: is required"
    said = error["msg"].removeprefix("Value error, ").removeprefix("Input ")
    if error["type"] == "too_short":
        return f"{where}: must not be empty"
    if error["type"] == "string_type":
        return f"{where}: {given}: write it in quotes"
    said = re.sub(r" or instance of \w+", "", said)
    said = said.replace("should be a valid tuple", "should be a list").replace("valid dictionary", "mapping")
    shown = f'"{given}": ' if isinstance(given, str | int | float) and error["type"] != "value_error" else ""
    return f"{where}: {shown}{said}"


def _path(steps: tuple[int | str, ...]) -> str:
    path = ""
    for step in steps:
        if step == "[key]":
            continue
        path += f"[{step}]" if isinstance(step, int) else f".{step}" if path else str(step)
    return path or "file"
