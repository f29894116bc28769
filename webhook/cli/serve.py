"""`gpu-tiers serve`: its options; the server is imported when it starts, so that no other command waits for that."""

import logging
from collections.abc import Sequence
from pathlib import Path
from socket import gethostname
from typing import Annotated

import typer

from certs.source import CertificateError
from webhook.cli.output import BAD_INPUT
from webhook.config.errors import ConfigError
from webhook.kube.errors import ApiError
from webhook.policy.classification.classify import make_expressions
from webhook.server import logs
from webhook.server.settings import Certificates, Election, PrometheusServer, Settings


def serve(
    policy: Annotated[Path, typer.Option(help="Policy file; read again when it changes.")] = Path(
        "/etc/gpu-tiers/policy.yaml"
    ),
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "0.0.0.0",
    port: Annotated[int, typer.Option(min=1, max=65535, help="HTTPS port of /mutate and /validate.")] = 9443,
    metrics_port: Annotated[int, typer.Option(min=1, max=65535, help="HTTP port of probes and metrics.")] = 8080,
    page_port: Annotated[
        int | None,
        typer.Option(min=1, max=65535, help="Port of the page on loopback, where only kubectl port-forward gets."),
    ] = None,
    page_tls_port: Annotated[
        int | None,
        typer.Option(min=1, max=65535, help="HTTPS port of the page for those with a token and the right to read it."),
    ] = None,
    page_audience: Annotated[
        list[str] | None,
        typer.Option(help="Audience of those tokens; may be repeated. Without one, the API server's."),
    ] = None,
    reports_port: Annotated[
        int | None,
        typer.Option(min=1, max=65535, help="HTTPS port where trainings report how far they are."),
    ] = None,
    reports_service: Annotated[
        str, typer.Option(help="Headless Service of that port; the certificate has its names.")
    ] = "gpu-tiers-reports",
    hand_over_port: Annotated[
        int | None,
        typer.Option(min=1, max=65535, help="HTTPS port where the replica that leads takes bookings from the others."),
    ] = None,
    pod_ip: Annotated[
        str, typer.Option(envvar="POD_IP", help="Address at which they reach it.", show_default="--host")
    ] = "",
    prometheus_url: Annotated[
        str | None,
        typer.Option(help="http(s)://… of a Prometheus that scrapes gpu-tiers: the page's last 24 hours are by it."),
    ] = None,
    prometheus_label: Annotated[
        list[str] | None,
        typer.Option(help="LABEL=VALUE that tells its metrics of this cluster from others'; may be repeated."),
    ] = None,
    prometheus_token_file: Annotated[
        Path | None, typer.Option(help="File with the bearer token that it wants; only over https.")
    ] = None,
    prometheus_ca_file: Annotated[
        Path | None, typer.Option(help="PEM file of its CA. Without it, the system's CAs.")
    ] = None,
    path_secret_file: Annotated[
        Path | None,
        typer.Option(
            help="File with what the paths begin with, as /SECRET/mutate, so that only the API server knows them."
        ),
    ] = None,
    client_ca: Annotated[
        Path | None,
        typer.Option(help="PEM file of a CA. Only clients with a certificate from it may ask for reviews."),
    ] = None,
    client_name: Annotated[
        list[str] | None,
        typer.Option(help="Name that their certificate must bear, in subject or SAN; may be repeated."),
    ] = None,
    certificates: Annotated[
        Certificates, typer.Option(help="Where the certificate comes from.")
    ] = Certificates.SELF_MANAGED,
    cert_dir: Annotated[Path, typer.Option(help="With files: folder of tls.crt, tls.key and ca.crt.")] = Path(
        "/var/run/gpu-tiers/tls"
    ),
    namespace: Annotated[
        str, typer.Option(envvar="POD_NAMESPACE", help="Namespace of the Service and of the Secret.")
    ] = "gpu-tiers",
    service: Annotated[
        str, typer.Option(help="Service that the API server calls; the certificate has its names.")
    ] = "gpu-tiers",
    secret: Annotated[
        str, typer.Option(help="With self-managed: Secret for the CA and the certificate.")
    ] = "gpu-tiers-tls",  # noqa: S107
    configuration: Annotated[str, typer.Option(help="Name of both webhook configurations.")] = "zz-gpu-tiers",
    ceilings: Annotated[
        str, typer.Option(help="ConfigMap, in the namespace, from which the API server reads tenants' ceilings.")
    ] = "gpu-tiers-ceilings",
    config_map: Annotated[
        str,
        typer.Option(help="ConfigMap, in the namespace, with the policy; NAME-in-force beside it tells what is taken."),
    ] = "gpu-tiers",
    dns_name: Annotated[
        list[str] | None,
        typer.Option(help="With self-managed: another name or address of the certificate; may be repeated."),
    ] = None,
    kubeconfig: Annotated[
        Path | None,
        typer.Option(help="Kubeconfig; without it the pod's ServiceAccount, else $KUBECONFIG or ~/.kube/config."),
    ] = None,
    identity: Annotated[
        str, typer.Option(envvar="POD_NAME", help="As whom the process competes to lead.", show_default="the host")
    ] = "",
    lease: Annotated[str, typer.Option(help="Lease of the leader, in the namespace.")] = "gpu-tiers",
    lease_seconds: Annotated[
        int, typer.Option(min=3, max=3600, help="How long the Lease holds after it was renewed last.")
    ] = 15,
    create_timeout: Annotated[
        float,
        typer.Option(
            min=1, max=3600, help="Seconds a create may take: the API server's --request-timeout, and 15 s for etcd."
        ),
    ] = 75,
    log_level: Annotated[logs.Level, typer.Option(help="Lowest level to log.")] = "info",
    log_format: Annotated[logs.Format, typer.Option(help="json for programs, console for people.")] = "json",
) -> None:
    """Answer the API server's reviews until SIGTERM. Exits with 2 if it can't start, and prints why."""
    settings = Settings(
        policy=policy,
        host=host,
        port=port,
        metrics_port=metrics_port,
        page_port=page_port,
        page_tls_port=page_tls_port,
        page_audiences=tuple(page_audience or ()),
        reports_port=reports_port,
        reports_service=reports_service,
        hand_over_port=hand_over_port,
        pod_ip=pod_ip,
        prometheus=_prometheus(prometheus_url, prometheus_label or (), prometheus_token_file, prometheus_ca_file),
        path_secret_file=path_secret_file,
        client_ca=client_ca,
        client_names=tuple(client_name or ()),
        certificates=certificates,
        cert_dir=cert_dir,
        namespace=namespace,
        service=service,
        secret=secret,
        configuration=configuration,
        ceilings=ceilings,
        config_map=config_map,
        dns_names=tuple(dns_name or ()),
        kubeconfig=kubeconfig,
        election=Election(namespace, lease, identity or gethostname(), lease_seconds, create_timeout),
    )
    logs.set_up(log_level, log_format)
    _serve_until_sigterm(settings)


def _prometheus(
    url: str | None, labels: Sequence[str], token_file: Path | None, ca_file: Path | None
) -> PrometheusServer | None:
    """What the options say of it. Raises typer.BadParameter."""
    if not url:
        return None
    if not url.startswith("https://" if token_file else ("http://", "https://")):
        wanted = "https://, because a token goes with each question" if token_file else "http:// or https://"
        raise typer.BadParameter(f"must begin with {wanted}", param_hint="--prometheus-url")
    if wrong := next((each for each in labels if "=" not in each), None):
        raise typer.BadParameter(f"{wrong} is not LABEL=VALUE", param_hint="--prometheus-label")
    told = (each.partition("=") for each in labels)
    return PrometheusServer(url, {label: value for label, _, value in told}, token_file, ca_file)


def _serve_until_sigterm(settings: Settings) -> None:
    """Run the server; where it can't start, say why and exit with 2."""
    import uvloop  # noqa: PLC0415 - see above

    from webhook.server.compose import run  # noqa: PLC0415

    try:
        make_expressions()
        uvloop.run(run(settings))
    except (ConfigError, ApiError, CertificateError, OSError) as error:
        logging.getLogger(__name__).error("can't start", {"reason": str(error)})  # noqa: TRY400 - it says it all
        raise typer.Exit(BAD_INPUT) from None
