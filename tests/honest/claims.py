"""ResourceClaims: what people apply with a workload, and what their controller in the cluster makes of templates."""

from collections.abc import Iterable

from tests.honest.api import Api
from tests.honest.objects import (
    CLAIM_TEMPLATES,
    CLAIMED,
    CLAIMS,
    DEVICE_CLASS,
    PODS,
    Tree,
    claim_shared,
    claims_of,
    copy,
    gpus_of,
    is_active,
    key_of,
    reference_to,
    workload,
)
from tests.honest.requests import ApiServer


def claim_applied(action: Tree) -> Tree | None:
    """Return the claim, or the template of claims, that a person applies with a workload."""
    if not action.get("claim") or not action["gpus"]:
        return None
    exactly = {"deviceClassName": DEVICE_CLASS, "allocationMode": "ExactCount", "count": action["gpus"]}
    spec: Tree = {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}}
    name = f"{action['name']}-gpus"
    if action["claim"] == "shared":
        return workload("ResourceClaim", action["ns"], name, spec)
    return workload("ResourceClaimTemplate", action["ns"], name, {"spec": spec})


def gpus_on(pods: Iterable[Tree]) -> int:
    """Return the GPUs that pods take of their node: a claim that they share is allocated once."""
    pods = list(pods)
    shared = {(pod["metadata"]["namespace"], claim_shared(pod)): gpus_of(pod) for pod in pods if claim_shared(pod)}
    return sum(gpus_of(pod) for pod in pods if not claim_shared(pod)) + sum(shared.values())


def has_claims(pod: Tree) -> bool:
    return CLAIMED in pod["metadata"].get("annotations", {})


class ClaimController:
    """Makes a claim for each pod that names a template; the garbage collector deletes it after its pod."""

    def __init__(self, api: Api, server: ApiServer) -> None:
        self._api = api
        self._server = server

    async def step(self) -> None:
        for pod in self._api.all(PODS):
            for claim in claims_of(pod) if is_active(pod) else ():
                if "resourceClaimTemplateName" in claim and not pod.get("status", {}).get("resourceClaimStatuses"):
                    await self._make(pod, claim)

    async def _make(self, pod: Tree, claim: Tree) -> None:
        namespace, name = key_of(pod)
        template = self._api.find(CLAIM_TEMPLATES, (namespace, claim["resourceClaimTemplateName"]))
        if template is None:
            return
        made = workload("ResourceClaim", namespace, f"{name}-{claim['name']}", copy(template["spec"]["spec"]))
        made["metadata"]["ownerReferences"] = [reference_to(pod)]
        made["metadata"]["annotations"] = {"resource.kubernetes.io/pod-claim-name": claim["name"]}
        reply = await self._server.create(made)
        now = self._api.still_there(PODS, pod)
        if reply.allowed and now is not None:
            statuses = [{"name": claim["name"], "resourceClaimName": made["metadata"]["name"]}]
            self._api.change(PODS, key_of(now), status={**now.get("status", {}), "resourceClaimStatuses": statuses})


class Allocations:
    """The allocations of shared claims: all pods of a claim run on its node."""

    def __init__(self, running: Iterable[Tree]) -> None:
        self._nodes: dict[tuple[str, str], str] = {}
        for pod in running:
            self.add(pod, pod["spec"]["nodeName"])

    def node(self, pod: Tree) -> str:
        return self._nodes.get(self._key(pod), "")

    def add(self, pod: Tree, node: str) -> None:
        if claim_shared(pod):
            self._nodes[self._key(pod)] = node

    @staticmethod
    def _key(pod: Tree) -> tuple[str, str]:
        return pod["metadata"]["namespace"], claim_shared(pod)


def has_its_claims(api: Api, pod: Tree) -> bool:
    """Tells whether all claims of a pod are there."""
    namespace, made = pod["metadata"]["namespace"], pod.get("status", {}).get("resourceClaimStatuses", ())
    named = [each["resourceClaimName"] for each in (*claims_of(pod), *made) if "resourceClaimName" in each]
    there = all(api.find(CLAIMS, (namespace, each)) is not None for each in named)
    return there and len(named) == len(claims_of(pod))
