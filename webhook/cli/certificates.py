"""`gpu-tiers certs`: writes a CA and a certificate as files, and describes a certificate."""

import asyncio
import ipaddress
import re
from pathlib import Path

import typer

from certs.make import utc_now
from certs.source import CERTIFICATE, KEY, Bundle, CertificateError, CertificateFiles, describe, make_files
from webhook.cli.command import fail, with_options

LONGEST_NAME = 253

app = typer.Typer(no_args_is_help=True, rich_markup_mode="markdown", help="Make and inspect certificates.")


@app.command("make")
@with_options
def make(folder: Path, dns_name: list[str], *, force: bool = False) -> None:
    """Make a CA and a certificate for these names, for a webhook outside the cluster.

    Example: `gpu-tiers certs make tls --dns-name gpu-tiers.example.com`
    """
    if (folder / KEY).exists() and not force:
        fail(f"{folder / KEY} exists already; --force makes a new CA and certificate in its place")
    for name in dns_name:
        if not _is_name(name):
            fail(f'--dns-name: "{name[:60]}" is neither a DNS name nor an address')
    try:
        _print(make_files(folder, dns_name))
    except OSError as error:
        fail(f"{folder}: {error.strerror}")


@app.command("show")
@with_options
def show(folder: Path) -> None:
    """Show the certificate in a folder: its names, its dates, the days left.

    Example: `gpu-tiers certs show tls`
    """
    if not (folder / CERTIFICATE).exists():
        missing = f"has no {CERTIFICATE}" if folder.is_dir() else "is no folder"
        fail(f"{folder} {missing}; to make a certificate there: gpu-tiers certs make {folder} --dns-name NAME")
    try:
        _print(asyncio.run(CertificateFiles(folder).load()))
    except CertificateError as error:
        fail(str(error))


_LABEL = "[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"
_DNS_NAME = re.compile(rf"(\*\.)?({_LABEL}\.)*{_LABEL}", re.IGNORECASE)


def _is_name(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return _DNS_NAME.fullmatch(name) is not None and len(name) <= LONGEST_NAME
    return True


def _print(bundle: Bundle) -> None:
    for line in describe(bundle, utc_now()):
        typer.echo(line)
