"""The TenantQuotas as they were seen last; of one that broke, the last good tenant stays in force."""

from dataclasses import replace

import structlog

from webhook.kube.informer import Store
from webhook.policy.quota.tenant_quotas import TenantQuota

log = structlog.get_logger(__name__)


class TenantStore(Store[TenantQuota]):
    """TenantQuotas by name."""

    def kept(self, name: str, found: TenantQuota) -> TenantQuota:
        """The object, with the tenant that it was before it broke."""
        if found.problem is None:
            return found
        before = self.objects.get(name)
        if before is None or before.problem != found.problem:
            log.warning("tenant quota broken", tenant=name, problem=found.problem)
        return replace(found, tenant=before.tenant if before else None)
