"""Reads when the certificates end by which the API server reaches the webhook."""

import base64
from collections.abc import Iterable, Iterator

from cryptography import x509

from webhook.cli.installed import RELEASE
from webhook.cluster.webhook_configurations import WebhookConfiguration
from webhook.kube.client import Client
from webhook.kube.errors import Forbidden, NotFound
from webhook.kube.paths import path
from webhook.readmodel.lint.snapshot import CertificateSeen


async def certificates_seen(
    client: Client, configurations: Iterable[WebhookConfiguration]
) -> tuple[tuple[CertificateSeen, ...], bool]:
    """Those of our configurations and of the Secret; and whether the Secret may not be read. Raises ApiError."""
    ours = [each for each in configurations if each.is_ours]
    found = [certificate for each in ours for certificate in _trusted(each)]
    hidden = False
    for namespace, name in dict.fromkeys(place for each in ours for place in _secrets(each)):
        try:
            secret = await client.get(path("v1", "secrets", namespace, name))
        except NotFound:
            continue  # certificates of files, or of a Secret with a name of its own
        except Forbidden:
            hidden = True
            continue
        pem = _decoded(str((secret.get("data") or {}).get("tls.crt") or ""))
        found += list(_certificates(pem, f"Secret/{name} in {namespace}"))[:1]
    return tuple(found), hidden


def _trusted(configuration: WebhookConfiguration) -> Iterator[CertificateSeen]:
    """The CAs of all entries; each once."""
    bundles = dict.fromkeys(entry.client_config.ca_bundle for entry in configuration.webhooks)
    for bundle in bundles:
        yield from _certificates(_decoded(bundle), str(configuration), ca=True)


def _secrets(configuration: WebhookConfiguration) -> Iterator[tuple[str, str]]:
    """Where the chart keeps it: beside the Service that is called, else as the default release has it."""
    for entry in configuration.webhooks:
        service = entry.client_config.service
        yield (service.namespace, f"{service.name}-tls") if service else (RELEASE, f"{RELEASE}-tls")


def _certificates(pem: bytes, where: str, *, ca: bool = False) -> Iterator[CertificateSeen]:
    """The leaf first. What can't be read as a certificate is told by the webhook itself."""
    try:
        found = x509.load_pem_x509_certificates(pem) if pem.strip() else []
    except ValueError:
        return
    for each in found:
        yield CertificateSeen(where, each.not_valid_after_utc, ca)


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text)
    except ValueError:
        return b""
