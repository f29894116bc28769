"""What is wrong with a policy file: all problems at once, each with the field's path."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # commands that read no policy file say what is wrong, too
    from pydantic_core import ErrorDetails


MOST_SHOWN = 63
"""Characters of a value that is wrong."""

_ALONE = {"extra_forbidden": "there is no such field", "missing": "is required", "too_short": "must not be empty"}
_NUMBER, _WHOLE, _TRUTH, _MAPPING = (
    f"should be {each}" for each in ("a number", "a whole number", "true or false", "a mapping")
)
_SHOULD_BE = {
    "bool_parsing": _TRUTH,
    "bool_type": _TRUTH,
    "decimal_parsing": _NUMBER,
    "decimal_type": _NUMBER,
    "dict_type": _MAPPING,
    "finite_number": _NUMBER,
    "float_parsing": _NUMBER,
    "int_from_float": _WHOLE,
    "int_parsing": _WHOLE,
    "int_parsing_size": _WHOLE,
    "int_type": _WHOLE,
    "invalid_key": "should be text; write it in quotes",
    "model_type": _MAPPING,
    "string_too_short": "must not be empty",
    "string_type": "should be text",
    "tuple_type": "should be a list",
}
"""What pydantic says in a programmer's words; what it says of limits and words to choose from is plain."""


class ConfigError(Exception):
    """A file that can't be used. `problems` are sentences, each starting with the field's path."""

    def __init__(self, source: str, problems: Iterable[str]) -> None:
        self.source = source
        self.problems = tuple(problems)
        super().__init__("\n".join(f"{source}: {problem}" for problem in self.problems))


def sentence(error: "ErrorDetails") -> str:
    """One pydantic error as a person reads it: `tiers[1].value: "x": should be a whole number`."""
    return f"{field_path(steps_to(error))}: {fault(error)}"


def steps_to(error: "ErrorDetails") -> list[int | str]:
    """The way to the field that an error is about; pydantic goes a step further where a key is wrong."""
    return [step for step in error["loc"] if step != "[key]"]


def fault(error: "ErrorDetails") -> str:
    """The same without the field: the value, and what is accepted."""
    kind, said = error["type"], error["msg"]
    if kind in _ALONE:
        return _ALONE[kind]
    if kind in ("value_error", "assertion_error"):
        return said.partition(", ")[2]
    given = error["input"]
    quotes = "; write it in quotes" if kind == "string_type" and isinstance(given, bool | int | float) else ""
    return f"{_shown(given)}{_SHOULD_BE.get(kind) or said[max(said.find('should '), 0) :]}{quotes}"


def unreadable(error: OSError | UnicodeDecodeError) -> str:
    """Why a file can't be read."""
    return f"can't be read: {error.strerror}" if isinstance(error, OSError) else "can't be read: it is no UTF-8 text"


def _shown(given: object) -> str:
    """A value as it was written; of a list or a mapping nothing."""
    if isinstance(given, bool):
        return f"{str(given).lower()}: "
    return f'"{str(given)[:MOST_SHOWN]}": ' if isinstance(given, str | int | float) else ""


def field_path(steps: Iterable[int | str]) -> str:
    """A way to a field as a person reads it: `tiers[1].value`."""
    path = ""
    for step in steps:
        path += f"[{step}]" if isinstance(step, int) else f".{step}" if path else str(step)
    return path or "file"
