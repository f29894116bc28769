"""The scheduling gate behind which pods wait for their turn where a tenant's quota holds what is over it."""

from webhook.objects.pods import Pod
from webhook.policy.quota.charges import Charge
from webhook.policy.values.tenants import Tenant

GATE = "gpu-tiers.dev/quota"
"""Its name among a pod's schedulingGates. Who opens it: docs/decisions/hold.md."""


def is_gated(pod: Pod) -> bool:
    """Whether a pod waits behind our gate."""
    return any(isinstance(each, dict) and each.get("name") == GATE for each in pod.spec.scheduling_gates)


def is_held(pod: Pod, tenant: Tenant | None, charge: Charge | None) -> bool:
    """Whether a pod that is made now has to wait for its turn.

    One that names its node can't: the API server takes no gate with it.
    """
    return bool(tenant and charge and tenant.holds and tenant.charges(charge.gpus) and not pod.spec.node_name)
