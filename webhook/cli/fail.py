"""How a command ends that can't do what was asked."""

import sys
from typing import NoReturn

import typer

BAD_INPUT = 2


def fail(sentence: str) -> NoReturn:
    """End the program with 2, and a sentence on stderr."""
    typer.secho(sentence, fg="red", err=True, color=sys.stderr.isatty())
    raise typer.Exit(BAD_INPUT)
