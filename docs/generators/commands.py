"""Makes docs/commands.md of the command line itself."""

import inspect
from collections.abc import Iterator
from enum import Enum
from typing import Any

import typer

from generators.tables import code, page, table
from webhook.cli.main import app

_WHY = """\
What each command answers and accepts. `gpu-tiers COMMAND --help` says the same."""


def commands() -> str:
    """The page, whole."""
    root = typer.main.get_command(app)
    return page("Commands", "the commands in `webhook/cli/`", _WHY, *_sections(root, "gpu-tiers"))


def _sections(command: Any, name: str) -> Iterator[str]:
    below = {each: command.get_command(None, each) for each in getattr(command, "list_commands", lambda _: ())(None)}
    if command.params or not below:
        yield f"## {name}"
        yield inspect.cleandoc(command.help or "")
    if command.params:
        yield table(("option", "default", "meaning"), (_row(each) for each in command.params))
    for word, each in below.items():
        yield from _sections(each, f"{name} {word}")


def _row(parameter: Any) -> tuple[str, str, str]:
    argument = parameter.param_type_name == "argument"
    names = parameter.metavar or parameter.name.upper() if argument else ", ".join(parameter.opts)
    environment = f" Also `${parameter.envvar}`." if parameter.envvar else ""
    return code(names), _default(parameter), f"{parameter.help}{environment}"


def _default(parameter: Any) -> str:
    if parameter.required:
        return "required"
    value = parameter.default
    return code(value.value if isinstance(value, Enum) else value) if value not in (None, "", False) else ""
