"""Events on gangs that can't run within their tenant's quota, and on its TenantQuota: one when it comes to that."""

from collections.abc import Callable, Sequence

from webhook.controller.event_series import Regarding
from webhook.controller.event_writer import EventWriter
from webhook.policy.quota.gangs import StrandedGang, stranded_sentence

REASON = "GangStranded"


class StrandedEvents:
    """`api_version` gives that of a kind whose workloads are followed, `tenant_uid` a TenantQuota's UID."""

    def __init__(
        self, writer: EventWriter, api_version: Callable[[str], str], tenant_uid: Callable[[str], str | None]
    ) -> None:
        self._writer = writer
        self._api_version = api_version
        self._tenant_uid = tenant_uid
        self._told: dict[str, frozenset[str]] = {}

    def tell(self, tenant: str, gangs: Sequence[StrandedGang]) -> None:
        """These gangs of a tenant are stranded, and no others."""
        before = self._told.get(tenant, frozenset())
        for gang in gangs:
            if gang.uid not in before:
                self._add(tenant, gang)
        self._told[tenant] = frozenset(gang.uid for gang in gangs)

    def _add(self, tenant: str, gang: StrandedGang) -> None:
        sentence = stranded_sentence((gang,))
        kind = gang.kind.partition(".")[0]
        version = self._api_version(gang.kind)
        self._writer.add(Regarding(version, kind, gang.name, gang.uid, gang.namespace), REASON, sentence)
        if uid := self._tenant_uid(tenant):
            self._writer.add(Regarding.tenant_quota(tenant, uid), REASON, sentence)
