"""Counts what a pod takes of its node, as kube-scheduler does.

A resize changes what the pod asks for, what the kubelet has allocated, and what is in effect, one after the other. The
largest of these counts.

Sources: KEP-753 (the effective request of a pod with sidecars), KEP-2837 (resources of a pod as a whole), KEP-1287 and
KEP-5419 (resize in place), and PodRequests in k8s.io/component-helpers/resource of Kubernetes 1.37.
"""

from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal

from msgspec import field

from webhook.objects.pods import Container, Pod, PodSpec, Quantity, Resources
from webhook.objects.quantities import quantity
from webhook.objects.view import View
from webhook.policy.quota.demand import NOTHING, peak_request

Amounts = Mapping[str, Decimal]
Quantities = Mapping[str, Quantity]


class SizedSpec(PodSpec, frozen=True):
    """A spec with what counts beside its containers."""

    overhead: dict[str, Quantity] = field(default_factory=dict)
    resources: Resources = Resources()


class _Effective(View, frozen=True):
    requests: dict[str, Quantity] | None = None


class _ContainerStatus(View, frozen=True):
    name: str = ""
    allocated_resources: dict[str, Quantity] | None = None
    resources: _Effective = _Effective()


class PodCondition(View, frozen=True):
    """A condition of a pod."""

    type: str = ""
    reason: str = ""


class SizedStatus(View, frozen=True):
    """The allocated and the effective resources, of each container and of the pod as a whole."""

    container_statuses: tuple[_ContainerStatus, ...] = ()
    init_container_statuses: tuple[_ContainerStatus, ...] = ()
    allocated_resources: dict[str, Quantity] | None = None
    resources: _Effective | None = None
    conditions: tuple[PodCondition, ...] = ()


def pod_requests(spec: SizedSpec, status: SizedStatus) -> dict[str, Decimal]:
    """Return what a pod takes of each resource. Raises Refused for a quantity that is none."""
    # 1. A resize that the node can never grant does not count.
    infeasible = any((each.type, each.reason) == ("PodResizePending", "Infeasible") for each in status.conditions)
    statuses = {each.name: each for each in (*status.container_statuses, *status.init_container_statuses)}

    def asked(container: Container) -> Quantities:
        return {} if infeasible else container.resources.asked

    def allocated(container: Container) -> Quantities:
        found = statuses[container.name].allocated_resources if container.name in statuses else None
        return asked(container) if found is None else found

    def effective(container: Container) -> Quantities:
        found = statuses[container.name].resources.requests if container.name in statuses else None
        return allocated(container) if found is None else found

    # 2. The containers, or what the kubelet says of all of them together.
    level = status.resources.requests if status.resources else None
    totals = [_peaks(spec, asked)]
    if status.allocated_resources is not None and level is not None:
        totals += [_read(status.allocated_resources), _read(level)]
    elif statuses:
        totals += [_peaks(spec, allocated), _peaks(spec, effective)]
    most = _largest(totals)

    # 3. The pod as a whole.
    whole = [_read(spec.resources.asked)]
    if whole[0] and status.resources:
        whole = [*(() if infeasible else whole), _read(level or {}), _read(status.allocated_resources or {})]
    most |= _largest(whole)
    overhead = _read(spec.overhead)
    return {name: most.get(name, NOTHING) + overhead.get(name, NOTHING) for name in most.keys() | overhead.keys()}


def _peaks(spec: PodSpec, of: Callable[[Container], Quantities]) -> dict[str, Decimal]:
    """Return the most that a pod takes at a time, while it starts or while it runs."""
    amounts = {path: _read(of(container)) for path, container in spec.every_container()}

    def peak(name: str) -> Decimal:
        return peak_request(Pod(spec=spec), lambda _, path: amounts[path].get(name, NOTHING))

    return {name: peak(name) for name in {name for each in amounts.values() for name in each}}


def _read(quantities: Quantities) -> dict[str, Decimal]:
    return {name: quantity(value, name) for name, value in quantities.items()}


def _largest(found: Iterable[Amounts]) -> dict[str, Decimal]:
    largest: dict[str, Decimal] = {}
    for each in found:
        for name, amount in each.items():
            largest[name] = max(amount, largest.get(name, NOTHING))
    return largest
