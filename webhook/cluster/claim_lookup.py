"""Looks up what the resource claims of pods ask for."""

from webhook.cluster.stored_objects import FreshLookups, StoredObjects, in_time, kept_objects
from webhook.kube.ttl_cache import TTLCache
from webhook.objects.pods import PodClaim
from webhook.objects.refusal import Reason, Refused
from webhook.objects.view import view
from webhook.policy.workloads.claims import GROUP, Claim, ClaimTemplate, devices_of
from webhook.policy.workloads.workload import Devices


class ClaimLookup(FreshLookups, frozen=True):
    """`Claims` of an API server."""

    objects: StoredObjects
    kept: TTLCache[tuple[str, PodClaim], tuple[Devices, ...]] = kept_objects()

    async def close(self) -> None:
        """End the look-ups under way."""
        await self.kept.close()

    async def devices(self, namespace: str, claim: PodClaim) -> tuple[Devices, ...]:
        """The devices of a pod's claim, which is made already or is to be made of a template."""
        async with in_time(claim.source):
            return await self.kept.get((namespace, claim), lambda: self._devices(namespace, claim), self.since)

    async def _devices(self, namespace: str, claim: PodClaim) -> tuple[Devices, ...]:
        kind, name = claimed_object(claim)
        tree = await self.objects.named(GROUP, f"{kind.lower()}s", namespace, name, f"{kind}/{name}")
        return devices_in(tree, namespace, claim)


def claimed_object(claim: PodClaim) -> tuple[str, str]:
    """Kind and name of the object that says what a pod's claim asks for. Raises Refused where it names none."""
    made = claim.resource_claim_name is not None
    name = claim.resource_claim_name if made else claim.resource_claim_template_name
    if not name:
        raise Refused(Reason.INVALID, "claim-of-nothing", "spec.resourceClaims", entry=claim.name)
    return "ResourceClaim" if made else "ResourceClaimTemplate", name


def devices_in(tree: object, namespace: str, claim: PodClaim) -> tuple[Devices, ...]:
    """What that object asks for. Raises Refused."""
    if claim.resource_claim_name is not None:
        return tuple(devices_of(view(tree, Claim).spec, claim.name, f"{namespace}/{claim.resource_claim_name}"))
    return tuple(devices_of(view(tree, ClaimTemplate).spec.spec, claim.name))
