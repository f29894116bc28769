"""The command line: one program that behaves as kubectl does, and which command is where."""

import os
import re
import sys
from importlib import metadata
from typing import Annotated, Any

import typer
from pydantic import ValidationError
from typer.core import TyperGroup

from webhook.cli import certificates, policy
from webhook.cli.audit import audit
from webhook.cli.demo import demo
from webhook.cli.explain import explain
from webhook.cli.lint import lint
from webhook.cli.policy_tests import run_tests
from webhook.cli.posture import posture
from webhook.cli.review import review
from webhook.cli.serve import serve
from webhook.cli.usage import usage
from webhook.cli.why_pending import why_pending
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


app = typer.Typer(
    name="gpu-tiers",
    cls=KubectlGroup,
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Tiers, checkpoint hooks and quotas for GPU pods, at admission.",
)
app.command()(serve)
app.command()(review)
app.command("test")(run_tests)
app.command()(posture)
app.command()(usage)
app.command()(lint)
app.command()(audit)
app.command()(explain)
app.command()(why_pending)
app.command()(demo)
app.add_typer(policy.app, name="policy")
app.add_typer(certificates.app, name="certs")


@app.command()
def version() -> None:
    """Print the version."""
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
