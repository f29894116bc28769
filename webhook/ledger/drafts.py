"""The draft of each tenant's account that a ledger in memory books into, made anew only where something has changed."""

from collections.abc import Callable, Collection
from dataclasses import dataclass

from webhook.ledger.account import Account
from webhook.ledger.draft import Draft
from webhook.ledger.pod_view import PodView
from webhook.ledger.promises import Promises
from webhook.ledger.rewrite import rewritten
from webhook.policy.values.tenants import Tenant


@dataclass(frozen=True, slots=True)
class _Drafted:
    tenant: Tenant
    draft: Draft


class Drafts:
    """Drafts by tenant. `tenant_name` tells whose a namespace is now, and is asked at each look."""

    def __init__(self, view: PodView, promises: Promises, tenant_name: Callable[[str], str | None]) -> None:
        self._view = view
        self._promises = promises
        self._tenant_name = tenant_name
        self._kept: dict[str, _Drafted] = {}

    def of(self, tenant: Tenant, *booked_in: str) -> Draft:
        """What books into a tenant's account, in namespaces that are its own for the booking too."""
        known = {*self._view.namespaces(), *self._promises.namespaces()}
        theirs = {*(each for each in known if self._tenant_name(each) == tenant.name), *booked_in}
        kept = self._kept.get(tenant.name)
        if kept is None or kept.tenant != tenant or kept.draft.account.namespaces.keys() != theirs:
            kept = self._kept[tenant.name] = _Drafted(tenant, Draft(self.account(theirs), tenant))
        return kept.draft

    def account(self, namespaces: Collection[str]) -> Account:
        """What pods and gangs of these namespaces hold, and what was promised there."""
        return rewritten(self._promises.account(namespaces), self._view)

    def drop(self, changed: Collection[str]) -> None:
        """Something has changed in these namespaces."""
        kept = self._kept.items()
        self._kept = {name: each for name, each in kept if each.draft.account.namespaces.keys().isdisjoint(changed)}
