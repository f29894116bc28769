"""Reviews of workloads with `tierAccess: RBAC`: whoever names a tier has the right to use it.

The chart then sends every workload here, also those that controllers have made and updates of owners. Otherwise a
person could hide a workload behind an owner, and its controller's pods would pass by it.
"""

from contextlib import suppress

import msgspec
from msgspec.structs import replace

from webhook.admission.facts import facts_of_workload, workload_as_sent
from webhook.admission.review import Request
from webhook.admission.reviewer import Verdict
from webhook.admission.workloads import WorkloadReviewer
from webhook.objects.group_kind import GroupKind
from webhook.objects.pods import Named
from webhook.objects.refusal import Reason, Refusal, Refused
from webhook.objects.view import read
from webhook.policy.tier_access import tiers_named_in
from webhook.policy.values.facts import Facts
from webhook.policy.values.tier_policy import Mode


class EntitledWorkloadReviewer(WorkloadReviewer, frozen=True):
    """Judges a workload, after its user's right to the tiers that it names."""

    async def validate(self, request: Request, mode: Mode) -> Verdict:
        if (problem := await self._unentitled(request)) is not None:
            return Verdict(refusal=problem)
        # What a controller has made is judged further only if it is a gang and its controller is none, which is what
        # the chart sends without tierAccess.
        controller, rows = read(request.object, Named).metadata.controller, self.policy.kinds.by_kind
        is_gang = rows[GroupKind(request.kind.group, request.kind.kind)].gang
        if controller and not (is_gang and all(row.kind != controller.kind for row in rows.values() if row.gang)):
            return Verdict()
        return await super().validate(request, mode)

    async def _unentitled(self, request: Request) -> Refusal | None:
        """Return the refusal of a user who names a tier that the old object did not name.

        Raises Refused if an owner can't be read, because it may be readable again when the pods come. A workload that
        is invalid makes no pods.
        """
        try:
            new = await self._facts(request.object, request)
        except Refused as refused:
            if refused.refusal.reason is Reason.UNREADABLE:
                raise
            return None
        before: frozenset[str] = frozenset()
        with suppress(Refused):  # at a create there is no old object
            before = frozenset(tiers_named_in(await self._facts(request.old_object, request), self.policy))
        named = [each for each in tiers_named_in(new, self.policy) if each not in before]
        return await self.unentitled(request, named, replace(new, owners=new.owners[1:]))

    async def _facts(self, raw: msgspec.Raw, request: Request) -> Facts:
        row = self.policy.kinds.by_kind[GroupKind(request.kind.group, request.kind.kind)]
        tree, metadata = workload_as_sent(raw), read(raw, Named).metadata
        return (await facts_of_workload(tree, row, metadata, request.namespace, self.cluster, self.policy)).facts
