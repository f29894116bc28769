"""`gpu-tiers certs`: makes a CA and a certificate as files, and says what a certificate is."""

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from certs.describe import describe
from certs.files import CertificateFiles
from certs.make import utc_now
from certs.on_disk import make_files
from certs.source import Bundle, CertificateError

app = typer.Typer(no_args_is_help=True, help="Make and inspect certificates.")

Folder = Annotated[Path, typer.Argument(help="Folder of tls.crt, tls.key and ca.crt.")]


@app.command()
def make(
    folder: Folder,
    dns_name: Annotated[list[str], typer.Option(help="A name or an address to put in; may be repeated.")],
) -> None:
    """Make a CA and a certificate for these names, for a webhook outside the cluster."""
    _print(make_files(folder, dns_name))


@app.command()
def show(folder: Folder) -> None:
    """Say what the certificate in a folder is: names, dates, days left."""
    try:
        _print(asyncio.run(CertificateFiles(folder).load()))
    except CertificateError as error:
        typer.secho(str(error), fg="red", err=True)
        raise typer.Exit(2) from None


def _print(bundle: Bundle) -> None:
    for line in describe(bundle, utc_now()):
        typer.echo(line)
