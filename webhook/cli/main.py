"""The command line: which command is where."""

from importlib import metadata
from typing import Annotated

import typer

from webhook.cli import certificates, policy_check
from webhook.cli.audit import audit
from webhook.cli.demo import demo
from webhook.cli.explain import explain
from webhook.cli.kubectl_group import KubectlGroup
from webhook.cli.lint import lint
from webhook.cli.posture import posture
from webhook.cli.review import review
from webhook.cli.serve import serve
from webhook.cli.test import run_tests
from webhook.cli.usage import usage
from webhook.cli.why_pending import why_pending

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
app.add_typer(policy_check.app, name="policy")
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
