"""The command line: a program that takes options as kubectl does, and the module of each command."""

import errno
import os
import re
import sys
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperArgument, TyperGroup, TyperOption

COMMANDS = {
    "Files, before anything is applied": {
        "review": "webhook.cli.review:review",
        "test": "webhook.cli.policy_tests:run_tests",
        "policy": "webhook.cli.policy:app",
    },
    "Questions about a cluster": {
        "explain": "webhook.cli.explain:explain",
        "why-pending": "webhook.cli.why_pending:why_pending",
        "usage": "webhook.cli.usage:usage",
        "posture": "webhook.cli.posture:posture",
        "report": "webhook.cli.prometheus:loss_report",
    },
    "Acting on trainings": {"save": "webhook.cli.save:save"},
    "Operating gpu-tiers": {
        "check": "webhook.cli.check:check",
        "lint": "webhook.cli.lint:lint",
        "audit": "webhook.cli.audit:audit",
        "open-gates": "webhook.cli.open_gates:open_gates",
        "certs": "webhook.cli.certificates:app",
    },
    "Running it": {"serve": "webhook.cli.serve:serve", "demo": "webhook.cli.demo:demo"},
}
"""The module and function of each command, by the headings of `--help`. A module is imported when needed, so that no
command waits for the libraries of another."""
_PLACES = {name: (heading, place) for heading, commands in COMMANDS.items() for name, place in commands.items()}
_SHOWN_TYPES = {"bool": None, "str": "TEXT", "int": "NUMBER", "float": "NUMBER", "path": "FILE", "Path": "FILE"}
"""The placeholder of an option's value in `--help`, by its type; None for a flag. Other types list their values."""
NOBODY_READS = 141
"""The exit code in a shell for a program that SIGPIPE ends, such as kubectl in `kubectl get pods | head -1`."""
DISK_FULL = 2


class KubectlGroup(TyperGroup):
    """The group of all commands: imports them on demand, accepts `-o=json` as kubectl does, and sets exit codes."""

    def list_commands(self, ctx: Any) -> list[str]:
        return [*_PLACES, *(each for each in super().list_commands(ctx) if each not in _PLACES)]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return the command of a name. For an unknown name, import all commands so that the nearest is suggested."""
        wanted = (cmd_name,) if {cmd_name} <= _PLACES.keys() | self.commands.keys() else _PLACES
        for name in [each for each in wanted if each in _PLACES and each not in self.commands]:
            heading, place = _PLACES[name]
            module, _, attribute = place.partition(":")
            found, holder = getattr(import_module(module), attribute), typer.Typer(**SETTINGS)
            if isinstance(found, typer.Typer):
                holder.add_typer(found, name=name, rich_help_panel=heading)
            else:
                holder.command(name, rich_help_panel=heading)(found)
            self.commands[name] = typer.main.get_group(holder).commands[name]
        return super().get_command(ctx, cmd_name)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return super().parse_args(ctx, [re.sub(r"^-(\w)=", r"-\1", each) for each in args])

    def invoke(self, ctx: Any) -> Any:
        """Run a command. An expected error, such as no right, prints its reason and exits with 2; others are raised.

        If pydantic refuses an option's value, the error has the same text as that mistake in a policy file.
        """
        try:
            return super().invoke(ctx)
        except typer.Exit:
            raise
        except typer.BadParameter as error:
            from pydantic import ValidationError  # noqa: PLC0415 - most commands take no such option

            from webhook.config.errors import fault  # noqa: PLC0415

            if isinstance(error.__cause__, ValidationError):
                error.message = fault(error.__cause__.errors()[0])
            raise
        except Exception as error:
            from webhook.cli.cluster.target import end_without_answer  # noqa: PLC0415 - only a failure needs it

            end_without_answer(error)
            raise

    def main(self, *args: Any, **extra: Any) -> Any:
        """Run the program. Exit with 141 if the reader of stdout ended (`… | head -1`), with 2 if the disk is full."""
        try:
            try:
                return super().main(*args, **extra)
            finally:
                if sys.stdout is not None:  # it was closed: `gpu-tiers … >&-`
                    sys.stdout.flush()
        except BrokenPipeError:
            _end(NOBODY_READS)
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
            sys.stderr.write(f"can't write: {error.strerror}\n")
            _end(DISK_FULL)
        except SystemExit as ended:  # from typer, or from rich
            if isinstance(ended.__context__, BrokenPipeError):
                _end(NOBODY_READS)
            raise


def _shown_type(parameter: Any, ctx: Any) -> str | None:
    """Return the placeholder of an option's value in `--help`; None for flags and arguments."""
    shown = parameter.display_type(ctx).strip("<>").removeprefix("list[").removesuffix("]")
    return None if parameter.param_type_name == "argument" else _SHOWN_TYPES.get(shown, shown)


# typer has no setting for placeholders, and makes the option --help itself
for _kind in (TyperOption, TyperArgument):
    _kind.display_type_rich = _shown_type  # type: ignore[assignment,method-assign]


def _end(code: int) -> None:
    """Exit with the code. Stdout becomes /dev/null, because the exit flushes a buffer that can't be written."""
    if sys.__stdout__ is not None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.__stdout__.fileno())
    sys.exit(code)


SETTINGS: dict[str, Any] = {
    "rich_markup_mode": "markdown",
    "pretty_exceptions_enable": False,
    "context_settings": {"help_option_names": ["-h", "--help"]},
}
app = typer.Typer(
    name="gpu-tiers",
    cls=KubectlGroup,
    no_args_is_help=True,
    help="Tiers, checkpoint hooks and quotas for GPU pods, at admission.",
    **SETTINGS,
)


@app.command(rich_help_panel="Running it")
def version() -> None:
    """Print the version."""
    from importlib import metadata  # noqa: PLC0415 - as long as a fifth of a command's start

    typer.echo(f"gpu-tiers {metadata.version('gpu-tiers')}")


def _say_version(asked: bool) -> None:  # noqa: FBT001 - typer's signature
    if asked:
        version()
        raise typer.Exit


@app.callback()
def gpu_tiers(
    *,
    asked: Annotated[
        bool, typer.Option("--version", callback=_say_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Run gpu-tiers with the options before a command."""
