"""The command line: one program that behaves as kubectl does, and which command is where."""

import errno
import os
import re
import sys
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

COMMANDS = {
    "serve": "webhook.cli.serve:serve",
    "review": "webhook.cli.review:review",
    "test": "webhook.cli.policy_tests:run_tests",
    "posture": "webhook.cli.posture:posture",
    "report": "webhook.cli.loss_report:loss_report",
    "usage": "webhook.cli.usage:usage",
    "lint": "webhook.cli.lint:lint",
    "check": "webhook.cli.check:check",
    "audit": "webhook.cli.audit:audit",
    "explain": "webhook.cli.explain:explain",
    "why-pending": "webhook.cli.why_pending:why_pending",
    "open-gates": "webhook.cli.open_gates:open_gates",
    "demo": "webhook.cli.demo:demo",
    "policy": "webhook.cli.policy:app",
    "certs": "webhook.cli.certificates:app",
}
"""Each is imported when it is asked for, so that it waits for no other's libraries."""
NOBODY_READS = 141
"""What a shell sees of a program that SIGPIPE ends, such as kubectl in `kubectl get pods | head -1`."""
DISK_FULL = 2


class KubectlGroup(TyperGroup):
    """Takes `-o=json` and `-n=team` for `-o json` and `-n team`, as kubectl does."""

    def list_commands(self, ctx: Any) -> list[str]:
        return [*COMMANDS, *(each for each in super().list_commands(ctx) if each not in COMMANDS)]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of a name; for one that there is not all are imported, of which the nearest is suggested."""
        wanted = (cmd_name,) if {cmd_name} <= COMMANDS.keys() | self.commands.keys() else COMMANDS
        for name in [each for each in wanted if each in COMMANDS and each not in self.commands]:
            self.commands[name] = _imported(name)
        return super().get_command(ctx, cmd_name)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return super().parse_args(ctx, [re.sub(r"^-(\w)=", r"-\1", each) for each in args])

    def invoke(self, ctx: Any) -> Any:
        """Run a command; what is wrong with an option's value is said in the words of the policy file's mistakes."""
        try:
            return super().invoke(ctx)
        except typer.BadParameter as error:
            from pydantic import ValidationError  # noqa: PLC0415 - most commands take no such option

            from webhook.config.errors import fault  # noqa: PLC0415

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
            _end(NOBODY_READS)
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
            sys.stderr.write(f"can't write: {error.strerror}\n")
            _end(DISK_FULL)
        except SystemExit as ended:  # that of typer, or of rich
            if isinstance(ended.__context__, BrokenPipeError):
                _end(NOBODY_READS)
            raise


def _imported(name: str) -> Any:
    module, _, attribute = COMMANDS[name].partition(":")
    found, holder = getattr(import_module(module), attribute), typer.Typer(**SETTINGS)
    if isinstance(found, typer.Typer):
        holder.add_typer(found, name=name)
    else:
        holder.command(name)(found)
    return typer.main.get_group(holder).commands[name]


def _end(code: int) -> None:
    """What is still in the buffer goes nowhere."""
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


@app.command()
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
    """What stands before a command."""
