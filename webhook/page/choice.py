"""What of the page its reader has chosen to see, as its URL says it: a tenant, a tier, what was refused."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Self

import msgspec

from webhook.report.at_risk_now import RisksOf
from webhook.report.gpus_now import Waits
from webhook.report.latest import Preemption, VerdictGroup
from webhook.report.tenants import TenantShown

LONGEST = 253
"""Characters of a name in Kubernetes."""
SECONDS = ("10", "30", "60", "300")
"""After which the page may load itself again: for a wall. Nobody who reads it slowly is disturbed unasked."""
MOST_TENANTS = 30


class Choice(msgspec.Struct, frozen=True):
    """ "" and False choose nothing. `reload`: seconds, one of SECONDS."""

    tenant: str = ""
    tier: str = ""
    refused: bool = False
    reload: str = ""

    @classmethod
    def of(cls, query: Mapping[str, str]) -> Self:
        """What a URL's query says; what it says otherwise counts for nothing."""
        tenant, tier = (query.get(name, "")[:LONGEST] for name in ("tenant", "tier"))
        reload = query.get("reload", "")
        return cls(tenant, tier, bool(query.get("refused")), reload if reload in SECONDS else "")

    def of_tenants(self, found: Sequence[TenantShown]) -> Sequence[TenantShown]:
        """The chosen one; of very many those that are worst off, the worst first."""
        if self.tenant:
            return [each for each in found if each.name == self.tenant]
        return found if len(found) <= MOST_TENANTS else sorted(found, key=_worst)[:MOST_TENANTS]

    def of_waits(self, found: Iterable[Waits]) -> list[Waits]:
        """Those of the tenant and tier."""
        return [each for each in found if self._has(each.tenant, each.tier)]

    def of_verdicts(self, found: Iterable[VerdictGroup]) -> Iterator[VerdictGroup]:
        """Those of the tenant and tier, and on request without what was let in."""
        for each in found:
            if self._has(each.last.tenant, each.last.tier) and (each.last.reason or not self.refused):
                yield each

    def of_preemptions(self, found: Iterable[Preemption]) -> Iterator[Preemption]:
        """Those in which a pod of the tenant and tier was evicted, or was evicted for."""
        for each in found:
            pods = (each.victim, *([each.preemptor] if each.preemptor else []))
            if any(self._has(pod.tenant, pod.tier) for pod in pods):
                yield each

    def _has(self, tenant: str, tier: str) -> bool:
        return self.tenant in ("", tenant) and self.tier in ("", tier)

    def of_risks(self, found: RisksOf) -> RisksOf:
        """The work at risk of the tenant and the tier."""
        return {
            (tenant, tier, exact): gpu_seconds
            for (tenant, tier, exact), gpu_seconds in found.items()
            if self.tenant in ("", tenant) and self.tier in ("", tier)
        }


EVERYTHING = Choice()


def _worst(tenant: TenantShown) -> tuple[bool, float, str]:
    return not tenant.problems, -max((sum(row.shares) for row in tenant.rows), default=0.0), tenant.name
