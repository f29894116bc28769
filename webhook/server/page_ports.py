"""The page of this process: where it listens, who gets in, and where it gets what it shows."""

import socket
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from certs.ca_bundle import WebhookConfigurations
from webhook.cluster.watched import Watched
from webhook.config.in_force import PolicyInForce
from webhook.page.readers import Readers
from webhook.page.routes import Sources, page_app
from webhook.readmodel.latest import Preemption, VerdictShown
from webhook.readmodel.posture import Posture, posture_of
from webhook.readmodel.tenants import TenantShown, tenant_shown
from webhook.server.listener import listen
from webhook.server.probes import Check
from webhook.server.run import AppPort
from webhook.server.running_ledger import RunningLedger
from webhook.server.settings import Settings
from webhook.server.tls import LiveCertificate

LOOPBACK = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class PagePorts:
    """Where the page listens: on loopback for whoever gets there, and on all addresses for those with a token."""

    local: socket.socket | None
    guarded: socket.socket | None

    @classmethod
    def opened(cls, settings: Settings) -> Self:
        """Those that the settings ask for. Raises OSError."""
        local = listen(LOOPBACK, settings.page_port) if settings.page_port is not None else None
        guarded = listen(settings.host, settings.page_tls_port) if settings.page_tls_port is not None else None
        return cls(local, guarded)

    def serving(self, sources: Sources, readers: Readers, certificate: LiveCertificate) -> Iterator[AppPort]:
        if self.local is not None:
            yield AppPort(page_app(sources), self.local)
        if self.guarded is not None:
            yield AppPort(page_app(sources, readers), self.guarded, certificate.pages)


def page_sources(
    settings: Settings,
    cluster: Watched,
    in_force: PolicyInForce,
    charged: RunningLedger,
    health: Callable[[], Mapping[str, str]],
    verdicts: Iterable[VerdictShown],
    preemptions: Iterable[Preemption],
) -> Sources:
    """Each part is read when somebody asks."""

    def posture() -> Posture:
        return posture_of(in_force.current(), classes=cluster.classes())

    def tenants() -> Sequence[TenantShown]:
        return [tenant_shown(each) for each in sorted(cluster.tenant_quotas(), key=lambda found: found.name)]

    def forward(pod: str) -> str:
        """Outside a cluster, where a kubeconfig is named, a replica is no pod."""
        if settings.kubeconfig or settings.page_port is None:
            return ""
        return f"kubectl -n {settings.namespace} port-forward pod/{pod} {settings.page_port}"

    return Sources(
        settings.election.identity,
        charged.leading,
        charged.leader,
        forward,
        health,
        posture,
        tenants,
        verdicts,
        preemptions,
    )


def health_of(
    checks: Mapping[str, Check], cluster: Watched, configurations: WebhookConfigurations
) -> Mapping[str, str]:
    """What is wrong with each thing that is checked, "" where nothing is."""
    found = {name: check() or "" for name, check in checks.items()}
    missing = [kind for kind, each in configurations.seen.items() if not each.registered]
    return found | {
        "watches": "; ".join(cluster.problems()),
        "webhook configurations": f"nothing is reviewed: no {', '.join(missing)}" if missing else "",
    }
