"""Counts the devices of each class that a resource claim asks for, as the in-tree quota does.

CEL selectors of devices are read if they are plain; any other expression is ignored here. Source: KEP-4381;
pkg/quota/v1/evaluator/core/resource_claims.go in kubernetes.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any

from webhook.objects.node_fit import Toleration
from webhook.objects.refusal import Reason, Refused
from webhook.objects.view import View
from webhook.policy.workloads.workload import Devices

_TEXT = r"('[^'\n]*'|\"[^\"\n]*\")"
_DRIVER = re.compile(rf"\s*device\.driver\s*==\s*{_TEXT}\s*")
_PROFILE = re.compile(
    rf"\s*device\.attributes\[(?:'gpu\.nvidia\.com'|\"gpu\.nvidia\.com\")\]\.profile\s*==\s*{_TEXT}\s*"
)
LONGEST_PROFILE = 63
"""Characters of a profile. One is stored for each request of each claim, and an expression may have 10,000."""
_MORE_THAN_A_LIST = ("||", "?", "\\", "//", "'''", '"""')
"""With one of these, consecutive terms need not all hold, or texts end elsewhere than they seem to."""


def drivers_in(selectors: Iterable[str]) -> tuple[str, ...]:
    """Return the drivers that the devices must have; none if unknown."""
    return tuple(_required(_DRIVER, selectors))


def profile_in(selectors: Iterable[str]) -> str:
    """Return the MIG profile that the devices must have; "" if unknown. The author may be malicious."""
    found = next(_required(_PROFILE, selectors), "")
    return found if len(found) <= LONGEST_PROFILE else ""


def _required(wanted: re.Pattern[str], selectors: Iterable[str]) -> Iterator[str]:
    """Yield the text in each term of the wanted form. All terms of all selectors must hold."""
    for term in (term for selector in selectors for term in terms_of(selector)):
        if found := wanted.fullmatch(term):
            yield found[1][1:-1]


def terms_of(expression: str) -> Iterator[str]:
    """Yield the terms of a plain list such as `a && b && c`; none of any other expression."""
    if any(sign in expression for sign in _MORE_THAN_A_LIST):
        return
    bare = re.sub(_TEXT, lambda text: "_" * len(text[0]), expression)
    if "'" in bare or '"' in bare:
        return
    begun, depth = 0, 0
    for sign in re.finditer(r"&&|[(\[{]|[)\]}]", bare):
        depth += 1 if sign[0] in "([{" else -1 if sign[0] in ")]}" else 0
        if sign[0] == "&&" and depth == 0:
            yield expression[begun : sign.start()]
            begun = sign.end()
    yield expression[begun:]


GROUP = "resource.k8s.io"
MOST_DEVICES = 32
"""The count of allocationMode All: the most devices that one claim can get (AllocationResultsMaxSize)."""


class _Cel(View, frozen=True):
    expression: str = ""


class Selector(View, frozen=True):
    """A condition on a device."""

    cel: _Cel = _Cel()


class SubRequest(View, frozen=True):
    """A number of devices of a class: `exactly`, an alternative, or all of a request of v1beta1."""

    name: str = ""
    device_class_name: str = ""
    allocation_mode: str = "ExactCount"
    count: int = 1
    selectors: tuple[Selector, ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    capacity: Any = None
    admin_access: bool = False


class DeviceRequest(SubRequest, frozen=True):
    """A request of a claim. v1 and v1beta2 have it under `exactly`, v1beta1 has it flat.

    adminAccess does not lower what is counted: the in-tree quota exempts no such request either (KEP-5018).
    """

    exactly: SubRequest | None = None
    first_available: tuple[SubRequest, ...] = ()


class _Requests(View, frozen=True):
    requests: tuple[DeviceRequest, ...] = ()
    constraints: tuple[Any, ...] = ()


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
    """Yield the devices of each request of a claim.

    `entry` is the claim's name in the pod, and `claim` its namespace/name if pods share it.

    Raises Refused if a count is invalid.
    """
    for request in spec.devices.requests:
        # The largest alternative counts, because any may be allocated. A mode that this version does not know counts as
        # none, as in the in-tree quota; a count of 0 is defaulted to 1.
        most: dict[tuple[str, str], int] = {}
        for each in request.first_available or (request.exactly or request,):
            if each.count < 0:
                raise Refused(Reason.INVALID, "no-device-count", "count", count=str(each.count))
            count = {"ExactCount": each.count or 1, "All": MOST_DEVICES}.get(each.allocation_mode, 0)
            key = each.device_class_name, profile_in(selector.cel.expression for selector in each.selectors)
            most[key] = max(most.get(key, 0), count)
        for (device_class, profile), count in most.items():
            yield Devices(device_class, count, entry, request.name, claim, profile)
