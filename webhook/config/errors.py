"""The problems of a policy file, all at once, each with the field's path."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from webhook.objects.data_files import data_file

if TYPE_CHECKING:  # commands that read no policy file use these errors, too
    from pydantic_core import ErrorDetails


MOST_SHOWN = 63
"""Characters of a wrong value that are shown."""

_WORDS = data_file(__name__, "errors.yaml")


class ConfigError(Exception):
    """A file that can't be used. `problems` are sentences, each starting with the field's path."""

    def __init__(self, source: str, problems: Iterable[str]) -> None:
        self.source = source
        self.problems = tuple(problems)
        super().__init__("\n".join(f"{source}: {problem}" for problem in self.problems))


def sentence(error: "ErrorDetails") -> str:
    """Return a pydantic error as a sentence, such as `tiers[1].value: "x": should be a whole number`."""
    return f"{field_path(steps_to(error))}: {fault(error)}"


def steps_to(error: "ErrorDetails") -> list[int | str]:
    """Return the steps to the field of an error, without pydantic's additional step for a wrong key."""
    return [step for step in error["loc"] if step != "[key]"]


def fault(error: "ErrorDetails") -> str:
    """Return the sentence of an error without its field: the value, and what is accepted."""
    kind, said = error["type"], error["msg"]
    if kind in _WORDS["alone"]:
        return str(_WORDS["alone"][kind])
    if kind in ("value_error", "assertion_error"):
        return said.partition(", ")[2]
    given, known = error["input"], _WORDS["shouldBe"].get(kind)
    quotes = "; write it in quotes" if kind == "string_type" and isinstance(given, bool | int | float) else ""
    # The value as it was written, unless it is a list or a mapping.
    shown = f'"{str(given)[:MOST_SHOWN]}": ' if isinstance(given, str | int | float) else ""
    shown = f"{str(given).lower()}: " if isinstance(given, bool) else shown
    return f"{shown}{known or said[max(said.find('should '), 0) :]}{quotes}"


def unreadable(error: OSError | UnicodeDecodeError) -> str:
    """Return why a file can't be read."""
    return f"can't be read: {error.strerror}" if isinstance(error, OSError) else "can't be read: it is no UTF-8 text"


def field_path(steps: Iterable[int | str]) -> str:
    """Return the path of a field, such as `tiers[1].value`."""
    path = ""
    for step in steps:
        path += f"[{step}]" if isinstance(step, int) else f".{step}" if path else str(step)
    return path or "file"
