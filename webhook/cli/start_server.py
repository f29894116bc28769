"""Runs the server of `gpu-tiers serve`, and says why where it can't start."""

import typer
import uvloop
from structlog import get_logger

from certs.source import CertificateError
from webhook.config.errors import ConfigError
from webhook.kube.errors import ApiError
from webhook.server.compose import run
from webhook.server.settings import Settings

CANT_START = 2


def serve_until_sigterm(settings: Settings) -> None:
    """Answer the API server's reviews until SIGTERM. Raises typer.Exit where it can't start."""
    try:
        uvloop.run(run(settings))
    except (ConfigError, ApiError, CertificateError, OSError) as error:
        get_logger(__name__).error("can't start", reason=str(error))
        raise typer.Exit(CANT_START) from None
