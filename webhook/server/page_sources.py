"""Where the page of this process gets what it shows."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from certs.ca_bundle import WebhookConfigurations
from webhook.cluster.live import LiveCluster
from webhook.config.in_force import PolicyInForce
from webhook.page.content import Sources
from webhook.readmodel.posture import Posture, posture_of
from webhook.readmodel.preemptions import Preemption
from webhook.readmodel.tenants import TenantShown, tenant_shown
from webhook.readmodel.verdicts import VerdictShown
from webhook.server.app import Check
from webhook.server.ledgers import RunningLedger
from webhook.server.settings import Settings


def page_sources(
    settings: Settings,
    cluster: LiveCluster,
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
    checks: Mapping[str, Check], cluster: LiveCluster, configurations: WebhookConfigurations
) -> Mapping[str, str]:
    """What is wrong with each thing that is checked, "" where nothing is."""
    found = {name: check() or "" for name, check in checks.items()}
    missing = [kind for kind, each in configurations.seen.items() if not each.registered]
    return found | {
        "watches": "; ".join(cluster.problems()),
        "webhook configurations": f"nothing is reviewed: no {', '.join(missing)}" if missing else "",
    }
