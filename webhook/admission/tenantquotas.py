"""Reviews of TenantQuotas: warnings for whoever writes one. Nothing is refused; the CRD refuses what is broken."""

import msgspec

from webhook.admission.cluster_protocol import Cluster
from webhook.admission.review import Request
from webhook.admission.verdict import Verdict
from webhook.ledger.protocol import Ledger
from webhook.objects.refusal import Refused
from webhook.policy.quota.tenant_quotas import read_tenant
from webhook.policy.quota.tenant_warnings import tenant_warnings
from webhook.policy.values.tier_policy import TierPolicy


def validate(request: Request, cluster: Cluster, ledger: Ledger, policy: TierPolicy) -> Verdict:
    """A verdict of warnings alone."""
    try:
        tenant = read_tenant(msgspec.json.decode(request.object))
    except Refused as refused:
        return Verdict(warnings=(f"{refused.sentence}; this quota is not in force",))
    others = [each for each in cluster.tenants() if each.name != tenant.name]
    return Verdict(
        warnings=tenant_warnings(tenant, others, cluster.namespaces(), ledger.usage_in, policy), tenant=tenant.name
    )
