"""`gpu-tiers serve`: runs the webhook. It imports the server when it starts, so that `--help` does not wait for it."""

import logging
from functools import partial

import typer

from certs.source import CertificateError
from webhook.cli.command import BAD_INPUT, with_options
from webhook.config.errors import ConfigError
from webhook.kube.errors import ApiError
from webhook.objects.data_files import data_file
from webhook.policy.classification.classify import make_expressions
from webhook.server import logs
from webhook.server.settings import Settings


@partial(with_options, table=data_file("webhook.server.settings", "settings.yaml"))
def serve(settings: Settings) -> None:
    """Answer the API server's reviews until SIGTERM.

    The chart runs it. Exits with 2 if it can't start, and prints why.

    Example: `gpu-tiers serve --policy policy.yaml --certificates files --cert-dir tls --kubeconfig admin.kubeconfig`
    """
    logs.set_up(settings.log_level, settings.log_format)
    _serve_until_sigterm(settings)


def _serve_until_sigterm(settings: Settings) -> None:
    """Run the server; if it can't start, print why and exit with 2."""
    import uvloop  # noqa: PLC0415 - see above

    from webhook.server.compose import run  # noqa: PLC0415

    try:
        make_expressions()
        uvloop.run(run(settings))
    except (ConfigError, ApiError, CertificateError, OSError) as error:
        logging.getLogger(__name__).error("can't start", {"reason": str(error)})  # noqa: TRY400 - it says it all
        raise typer.Exit(BAD_INPUT) from None
