"""How many devices of which class a resource claim asks for, counted as the in-tree quota does.

Source: KEP-4381; pkg/quota/v1/evaluator/core/resource_claims.go in kubernetes.
"""

from collections.abc import Iterator

from webhook.objects.refusal import Refused
from webhook.objects.view import View
from webhook.policy.workloads.workload import Devices

GROUP = "resource.k8s.io"
MOST_DEVICES = 32
"""What allocationMode All counts as: the most that one claim can be given (AllocationResultsMaxSize)."""


class SubRequest(View, frozen=True):
    """So many devices of a class: `exactly`, an alternative, or all of a request of v1beta1."""

    device_class_name: str = ""
    allocation_mode: str = "ExactCount"
    count: int = 1


class DeviceRequest(SubRequest, frozen=True):
    """A request of a claim. v1 and v1beta2 have it under `exactly`, v1beta1 has it flat.

    adminAccess is not read: the in-tree quota exempts no such request either (KEP-5018).
    """

    name: str = ""
    exactly: SubRequest | None = None
    first_available: tuple[SubRequest, ...] = ()


class _Requests(View, frozen=True):
    requests: tuple[DeviceRequest, ...] = ()


class ClaimSpec(View, frozen=True):
    """A claim's spec."""

    devices: _Requests = _Requests()


class Claim(View, frozen=True):
    """A ResourceClaim."""

    spec: ClaimSpec = ClaimSpec()


class ClaimTemplate(View, frozen=True):
    """A ResourceClaimTemplate: a claim's spec within a spec."""

    spec: Claim = Claim()


def devices_of(spec: ClaimSpec, entry: str, claim: str = "") -> Iterator[Devices]:
    """What each request of a claim asks for, under the claim's name within the pod; `claim` where pods share it.

    Raises Refused where a count is none.
    """
    for request in spec.devices.requests:
        for device_class, count in _most(request).items():
            yield Devices(device_class, count, entry, request.name, claim)


def _most(request: DeviceRequest) -> dict[str, int]:
    """Devices by class. Of alternatives each class counts with its largest, for any of them may be allocated."""
    most: dict[str, int] = {}
    for each in request.first_available or (request.exactly or request,):
        most[each.device_class_name] = max(most.get(each.device_class_name, 0), _count(each))
    return most


def _count(request: SubRequest) -> int:
    """A mode that this version does not know counts as none, as the in-tree quota has it; 0 is defaulted to 1."""
    if request.count < 0:
        raise Refused(f'count: "{request.count}" is no number of devices; write 1 or more')
    return {"ExactCount": request.count or 1, "All": MOST_DEVICES}.get(request.allocation_mode, 0)
