"""How many GPUs a pod or a workload holds when it runs, counted as the scheduler does.

Source: the effective request of a pod with sidecars, KEP-753.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from decimal import Decimal

from webhook.objects.containers import Container, Quantity
from webhook.objects.node_affinity import NodeRequirement
from webhook.objects.pods import Pod
from webhook.objects.quantities import gpus
from webhook.policy.quota.shares import share_holder, share_of
from webhook.policy.values.tier_policy import IMPLICIT_CLAIM, Flavor, TierPolicy
from webhook.policy.workloads.workload import Devices, Member

NOTHING = Decimal(0)


def demand_of(pod: Pod, devices: Collection[Devices], policy: TierPolicy) -> Decimal:
    """The GPUs a pod holds, weighted; `devices` are those of its resource claims."""
    own = sum((held * policy.weights[name] for name, held in asked_of(pod, policy).items()), NOTHING)
    if policy.shares:
        own += share_of(pod, own, policy)
    return own + sum((_claimed(each, policy) for each in _once(devices)), NOTHING)


def shared_by(devices: Collection[Devices], policy: TierPolicy) -> Mapping[str, Decimal]:
    """The part of a pod's GPUs that it may share with other pods: by ResourceClaim, as namespace/name."""
    shared: dict[str, Decimal] = {}
    for each in _once(devices):
        if each.claim and _claimed(each, policy):
            shared[each.claim] = shared.get(each.claim, NOTHING) + _claimed(each, policy)
    return shared


def held_by(count: int, gpus: Decimal, shared: Mapping[str, Decimal]) -> Decimal:
    """The GPUs of so many like pods, of which they share a part."""
    in_common = sum(shared.values(), NOTHING)
    return (gpus - in_common) * count + in_common if count else NOTHING


def hold_gpus(members: Iterable[Member], policy: TierPolicy) -> bool:
    """Whether a workload's pods belong to a gang that holds GPUs, even if it runs none of those pods now."""
    return any(demand_of(member.template, member.devices, policy) > 0 for member in members)


def may_hold_gpus(pod: Pod, policy: TierPolicy) -> bool:
    """Whether a pod asks for GPUs, or for claims of which it can't be told from the pod alone."""
    return bool(pod.spec.resource_claims) or demand_of(pod, (), policy) > 0


def asks_for_gpus(container: Container, devices: Iterable[Devices], policy: TierPolicy) -> bool:
    """Whether a container by itself holds a GPU, by name or by a claim: where a checkpoint hook belongs."""
    by_name = any(name in policy.weights and gpus(value, name) > 0 for name, value in _requests(container).items())
    return by_name or any(_uses(container, each) and _claimed(each, policy) > 0 for each in devices)


def gpu_holders(pod: Pod, devices: Collection[Devices], policy: TierPolicy) -> tuple[int, ...]:
    """The indices of the app containers that hold GPUs, or the pod's part of one."""
    sharing = share_holder(pod, policy) if policy.shares else None
    return tuple(
        index
        for index, each in enumerate(pod.spec.containers)
        if asks_for_gpus(each, devices, policy) or (sharing is not None and each.name == sharing)
    )


def flavor_of(pod: Pod, flavors: Iterable[Flavor]) -> str | None:
    """The flavor a pod is bound to by its node selector or by every term of its required node affinity."""
    for flavor in flavors:
        if all(_pinned(pod, key, value) for key, value in flavor.node_labels.items()):
            return flavor.name
    return None


def flavor_on(labels: Mapping[str, str], flavors: Iterable[Flavor]) -> str | None:
    """The flavor of a node that has these labels."""
    return next((flavor.name for flavor in flavors if flavor.node_labels.items() <= labels.items()), None)


def asked_of(pod: Pod, policy: TierPolicy) -> Mapping[str, Decimal]:
    """What a pod holds of each resource name that counts, unweighted."""
    named = {name for _, container in pod.spec.every_container() for name in _requests(container)}
    return {name: _held(pod, name) for name in named & policy.weights.keys()}


def _held(pod: Pod, resource: str) -> Decimal:
    return peak_request(pod, _counter(resource))


def peak_request(pod: Pod, count: Callable[[Container, str], Decimal]) -> Decimal:
    """The pod's effective request: what runs at once at the worst moment of its life.

    `count` tells what a container asks for, at its field path.
    """
    sidecars, peak = NOTHING, NOTHING
    for index, container in enumerate(pod.spec.init_containers):
        asked = count(container, f"spec.initContainers[{index}]")
        if container.is_sidecar:
            sidecars += asked
            peak = max(peak, sidecars)
        else:
            peak = max(peak, asked + sidecars)
    running = sum((count(each, f"spec.containers[{i}]") for i, each in enumerate(pod.spec.containers)), NOTHING)
    return max(running + sidecars, peak)


def _counter(resource: str) -> Callable[[Container, str], Decimal]:
    def count(container: Container, path: str) -> Decimal:
        value = _requests(container).get(resource)
        part = "requests" if resource in container.resources.requests else "limits"
        return NOTHING if value is None else gpus(value, f"{path}.resources.{part}.{resource}")

    return count


def _requests(container: Container) -> dict[str, Quantity]:
    """Requests, with limits where there are none: templates arrive without the API server's defaulting."""
    resources = container.resources
    return {**resources.limits, **resources.requests} if resources.limits else resources.requests


def _uses(container: Container, devices: Devices) -> bool:
    """Whether a container gets these devices: a claim that no container uses is held, and given to none."""
    return any(
        used.name == devices.entry and used.request in ("", devices.request) for used in container.resources.claims
    )


def _once(devices: Collection[Devices]) -> Iterable[Devices]:
    """The devices of each ResourceClaim once, though a pod may name it twice."""
    named = {(each.claim, each.request, each.device_class): each for each in devices if each.claim}
    return (*(each for each in devices if not each.claim), *named.values())


def _claimed(devices: Devices, policy: TierPolicy) -> Decimal:
    return policy.weights.get(IMPLICIT_CLAIM + devices.device_class, NOTHING) * devices.count


def _pinned(pod: Pod, key: str, value: str) -> bool:
    if pod.spec.node_selector.get(key) == value:
        return True
    pinned = NodeRequirement(key=key, operator="In", values=(value,))
    terms = pod.spec.affinity.node_affinity.required_during_scheduling_ignored_during_execution.node_selector_terms
    return bool(terms) and all(pinned in term.match_expressions for term in terms)
