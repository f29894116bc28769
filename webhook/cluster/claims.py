"""How many devices of which class a resource claim asks for, counted as the in-tree quota does.

Source: KEP-4381; pkg/quota/v1/evaluator/core/resource_claims.go in kubernetes.
"""

from collections.abc import Iterator

from webhook.objects.view import View
from webhook.policy.values.facts import Devices

GROUP = "resource.k8s.io"
MOST_DEVICES = 32
"""What allocationMode All counts as: the most that one claim can be given (AllocationResultsMaxSize)."""


class SubRequest(View, frozen=True):
    """So many devices of a class: `exactly`, an alternative, or all of a request of v1beta1."""

    device_class_name: str = ""
    allocation_mode: str = "ExactCount"
    count: int = 1


class DeviceRequest(SubRequest, frozen=True):
    """A request of a claim. v1 and v1beta2 have it under `exactly`, v1beta1 has it flat."""

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


def devices_of(spec: ClaimSpec) -> Iterator[Devices]:
    """One entry a request. Of alternatives each class counts with its largest, for any of them may be allocated."""
    for request in spec.devices.requests:
        if request.first_available:
            yield from _worst(request.first_available)
        else:
            exact = request.exactly or request
            yield Devices(exact.device_class_name, _count(exact))


def _worst(alternatives: tuple[SubRequest, ...]) -> Iterator[Devices]:
    most: dict[str, int] = {}
    for each in alternatives:
        most[each.device_class_name] = max(most.get(each.device_class_name, 0), _count(each))
    yield from (Devices(name, count) for name, count in most.items())


def _count(request: SubRequest) -> int:
    """A mode that this version does not know counts as none, as the in-tree quota has it."""
    return {"ExactCount": request.count, "All": MOST_DEVICES}.get(request.allocation_mode, 0)
