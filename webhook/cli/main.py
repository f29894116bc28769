"""The command line: which command is where."""

from importlib import metadata
from typing import Annotated

import typer

from webhook.cli import certificates, policy_check
from webhook.cli.demo import demo
from webhook.cli.review import review
from webhook.cli.serve import serve

app = typer.Typer(
    name="gpu-tiers",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Tiers, checkpoint hooks and quotas for GPU pods, at admission.",
)
app.command()(serve)
app.command()(review)
app.command()(demo)
app.add_typer(policy_check.app, name="policy")
app.add_typer(certificates.app, name="certs")


def _say_version(asked: bool) -> None:  # noqa: FBT001 - typer's signature
    if asked:
        typer.echo(f"gpu-tiers {metadata.version('gpu-tiers')}")
        raise typer.Exit


@app.callback()
def gpu_tiers(
    *,
    version: Annotated[
        bool, typer.Option("--version", callback=_say_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """What stands before a command."""
