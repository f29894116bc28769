"""The commands as one program that behaves as kubectl does: its options, its words, and its end in a closed pipe."""

import os
import re
import sys
from typing import Any

import typer
from pydantic import ValidationError
from typer.core import TyperGroup

from webhook.config.errors import fault

NOBODY_READS = 141
"""What a shell sees of a program that SIGPIPE ends, such as kubectl in `kubectl get pods | head -1`."""


class KubectlGroup(TyperGroup):
    """Takes `-o=json` and `-n=team` for `-o json` and `-n team`, as kubectl does."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """The arguments of this command and of those below it."""
        return super().parse_args(ctx, [re.sub(r"^-(\w)=", r"-\1", each) for each in args])

    def invoke(self, ctx: Any) -> Any:
        """Run a command; what is wrong with an option's value is said in the words of the policy file's mistakes."""
        try:
            return super().invoke(ctx)
        except typer.BadParameter as error:
            if isinstance(error.__cause__, ValidationError):
                error.message = fault(error.__cause__.errors()[0])
            raise

    def main(self, *args: Any, **extra: Any) -> Any:
        """The whole program, which ends where nobody reads on: `gpu-tiers review FOLDER | head -1`."""
        try:
            try:
                return super().main(*args, **extra)
            finally:
                if sys.stdout is not None:  # else it was closed: `gpu-tiers … >&-`
                    sys.stdout.flush()
        except BrokenPipeError:
            _end()
        except SystemExit as ended:  # that of typer, or of rich
            if isinstance(ended.__context__, BrokenPipeError):
                _end()
            raise


def _end() -> None:
    """Without a word: what is still in the buffer goes nowhere."""
    if sys.__stdout__ is not None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.__stdout__.fileno())
    sys.exit(NOBODY_READS)
