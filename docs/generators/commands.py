"""Makes docs/commands.md of the command line itself."""

import inspect
import re
from collections import Counter
from collections.abc import Iterator
from enum import Enum
from typing import Any

import typer

from generators.tables import code, page, table
from webhook.cli.main import app

_Row = tuple[str, str]

_HEAD = """\
What each command answers and accepts. `gpu-tiers COMMAND --help` says the same. [Questions](questions.md) says which
command to ask."""
_SHARED = "Commands that ask a cluster accept these too, but `open-gates` no `--output`."
_COLUMNS = ("option", "meaning")
_COMMON = 7
"""An option that so many commands share, with the same meaning, is on the page once."""
_CHOICE = re.compile("Use it to ask ")
"""Begins the paragraph that sends a reader of --help to other commands; docs/questions.md has a table of them."""


def commands() -> str:
    """Return the whole page: the options that many commands share, then a section for each command."""
    every = [(name, command, [_row(each) for each in command.params]) for name, command in _every(_root(), "gpu-tiers")]
    counted = Counter(row for _, _, rows in every for row in rows)
    common = [row for row, times in counted.items() if times >= _COMMON]
    sections = (part for each in every for part in _section(*each, common))
    shared = ("## Common options", _SHARED, table(_COLUMNS, common))
    return page("Commands", "the commands in `webhook/cli/`", _HEAD, *shared, *sections)


def _root() -> Any:
    return typer.main.get_command(app)


def _every(command: Any, name: str) -> Iterator[tuple[str, Any]]:
    """Yield each command with its name, except groups without options of their own."""
    below = {each: command.get_command(None, each) for each in getattr(command, "list_commands", lambda _: ())(None)}
    if command.params or not below:
        yield name, command
    for word, each in below.items():
        yield from _every(each, f"{name} {word}")


def _section(name: str, command: Any, rows: list[_Row], common: list[_Row]) -> Iterator[str]:
    yield f"## {name}"
    yield "\n\n".join(each for each in inspect.cleandoc(command.help or "").split("\n\n") if not _CHOICE.match(each))
    own = [row for row in rows if row not in common]
    if own:
        yield table(_COLUMNS, own)


def _row(parameter: Any) -> _Row:
    argument = parameter.param_type_name == "argument"
    names = parameter.metavar or parameter.name.upper() if argument else ", ".join(parameter.opts)
    environment = f" Also `${parameter.envvar}`." if parameter.envvar else ""
    return code(names), f"{parameter.help}{environment}{_default(parameter)}"


def _default(parameter: Any) -> str:
    """Return the default as a sentence, or that the option is required."""
    if parameter.required:
        return " Required."
    value = parameter.default
    return (
        f" Default: {code(value.value if isinstance(value, Enum) else value)}."
        if value not in (None, "", False)
        else ""
    )
