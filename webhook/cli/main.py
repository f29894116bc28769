"""The command line: which command is where."""

import typer

from webhook.cli import certificates
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
app.add_typer(certificates.app, name="certs")
