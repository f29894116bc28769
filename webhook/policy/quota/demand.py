"""Counts the GPUs that a pod uses when it runs, as the scheduler does, and finds GPUs that the policy does not list.

ResourceClaims get devices, and claims are made after their pods, or deleted and made again. So an annotation records
the GPUs of a pod's claims at admission: no claim of it may ask for more later, and the pod is charged no less while it
exists.

Source: the effective request of a pod with sidecars, KEP-753. Annotations ask for a part of a GPU from a scheduler that
shares GPUs between pods: docs/gpu-sharing of KAI Scheduler and Run:ai, and the validation of their admission webhook.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from decimal import ROUND_UP, Decimal
from functools import partial

from msgspec.structs import replace

from webhook.objects.group_kind import POD_GROUP
from webhook.objects.pods import Container, Metadata, Pod
from webhook.objects.quantities import MOST_GPUS, is_parameter, written
from webhook.objects.refusal import AdmissionWarning, Phrase, Reason, Refusal, Refused
from webhook.policy.values.tier_policy import TierPolicy
from webhook.policy.workloads.workload import Devices, Member

FRACTION, MEMORY, DEVICES = "gpu-fraction", "gpu-memory", "gpu-fraction-num-devices"
CONTAINER = "gpu-fraction-container-name"
"""The name of the container that has the part; by default the first."""
ANNOTATIONS = (FRACTION, MEMORY)

_NUMBER = re.compile(r"[+]?(?:[0-9]{1,20}(?:\.[0-9]{0,20})?|\.[0-9]{1,20})(?:[eE][+-]?[0-9])?")
_EXACT = Decimal("0.000001")
"""The precision of weights. Parts are rounded up to it, so that their sum is exact."""
_WHOLE = Decimal(1)


def share_of(pod: Pod, whole: Decimal, policy: TierPolicy) -> Decimal:
    """Return the parts of GPUs that an annotation asks for, weighted. `whole` are the GPUs of the containers' requests.

    0 without such an annotation. Raises Refused naming the annotation if it can't be read, or if the pod also asks for
    GPUs in another way.
    """
    asked = next((each for each in policy.shares if pod.metadata.annotations.get(each.annotation)), None)
    if asked is None:
        return Decimal(0)
    annotations, field = pod.metadata.annotations, _field(asked.annotation)
    value = annotations[asked.annotation]
    for other in ANNOTATIONS:
        if other != asked.annotation and (its := annotations.get(other)):
            raise Refused(Reason.INVALID, "two-parts", field, value=value, other=_field(other), other_value=its)
    if whole:
        raise Refused(Reason.INVALID, "part-and-whole", field, value=value)
    if is_parameter(value):
        part = _WHOLE
    elif asked.memory is not None:  # a part is on one GPU, so it is at most one
        part = min(_count(MEMORY, value, "no-gpu-memory") / asked.memory, _WHOLE)
    else:
        part = Decimal(value) if _NUMBER.fullmatch(value) else Decimal(0)
        if not 0 < part < 1:
            raise Refused(Reason.INVALID, "no-part", field, value=value)
    on = annotations.get(DEVICES, "1")
    count = _WHOLE if is_parameter(on) else _count(DEVICES, on, "no-part-count")
    return part.quantize(_EXACT, ROUND_UP) * count * asked.weight


def holder_by(asking: Iterable[str], pod: Pod) -> str | None:
    """Return the name of the container that gets the part of a GPU which the annotations `asking` ask for.

    None if they ask for none.
    """
    annotations, containers = pod.metadata.annotations, pod.spec.containers
    if not containers or not any(annotations.get(each) for each in asking):
        return None
    named = annotations.get(CONTAINER)
    return named if named in {each.name for each in containers} else containers[0].name


def _count(annotation: str, value: str, problem: str) -> Decimal:
    number = int(value) if value.isdecimal() and value.isascii() and len(value) <= len(str(MOST_GPUS)) else 0
    if not 0 < number <= MOST_GPUS:
        raise Refused(Reason.INVALID, problem, _field(annotation), value=value)
    return Decimal(number)


def _field(annotation: str) -> str:
    return f"metadata.annotations[{annotation}]"


NOTHING = Decimal(0)
_NONE = ("0", 0)


def demand_of(pod: Pod, devices: Collection[Devices], policy: TierPolicy) -> Decimal:
    """Return the weighted GPUs of a pod; `devices` are those of its resource claims.

    Raises Refused for an amount or a share that can't be read.
    """
    own = sum((amount * policy.weights[name] for name, amount in asked_of(pod, policy).items()), NOTHING)
    if policy.shares:
        own += share_of(pod, own, policy)
    return own + sum((_claimed(each, policy) for each in _once(devices)), NOTHING)


def used_gpus(pod: Pod, devices: Collection[Devices], policy: TierPolicy) -> Decimal:
    """Return the GPUs of an existing pod. An unreadable share is 0, because its scheduler does not read it either."""
    try:
        return demand_of(pod, devices, policy)
    except Refused:
        return demand_of(pod, devices, replace(policy, shares=()))


def shared_by(devices: Collection[Devices], policy: TierPolicy) -> Mapping[str, Decimal]:
    """Return the part of a pod's GPUs that other pods may share: by ResourceClaim, as namespace/name."""
    shared: dict[str, Decimal] = {}
    for each in _once(devices):
        if each.claim and _claimed(each, policy):
            shared[each.claim] = shared.get(each.claim, NOTHING) + _claimed(each, policy)
    return shared


def gpus_of_pods(count: int, gpus: Decimal, shared: Mapping[str, Decimal]) -> Decimal:
    """Return the GPUs of so many like pods, each with so many `gpus`. The shared part of these counts once."""
    in_common = sum(shared.values(), NOTHING)
    return (gpus - in_common) * count + in_common if count else NOTHING


def hold_gpus(members: Iterable[Member], policy: TierPolicy) -> bool:
    """Tell whether the pods of any of these templates ask for GPUs, even if none of them runs now."""
    return any(demand_of(member.template, member.devices, policy) > 0 for member in members)


def may_hold_gpus(pod: Pod, policy: TierPolicy) -> bool:
    """Tell whether a pod asks for GPUs, or for claims that only the cluster knows."""
    return bool(pod.spec.resource_claims) or demand_of(pod, (), policy) > 0


def asks_for_gpus(container: Container, devices: Iterable[Devices], policy: TierPolicy) -> bool:
    """Tell whether a container itself holds a GPU, by name or by claim, so that a checkpoint hook belongs there."""
    weights, asked = policy.weights, container.resources.asked
    by_name = any(name in weights and weights.gpus(name, value, name) > 0 for name, value in asked.items())
    # A claim that no container uses holds devices, but gives them to no container.
    uses = {(used.name, used.request) for used in container.resources.claims}
    given = (each for each in devices if {(each.entry, ""), (each.entry, each.request)} & uses)
    return by_name or any(_claimed(each, policy) > 0 for each in given)


def gpu_holders(pod: Pod, devices: Collection[Devices], policy: TierPolicy) -> tuple[int, ...]:
    """Return the indices of the app containers that hold GPUs, or the pod's part of one."""
    sharing = holder_by((each.annotation for each in policy.shares), pod) if policy.shares else None
    return tuple(
        index
        for index, each in enumerate(pod.spec.containers)
        if asks_for_gpus(each, devices, policy) or (sharing is not None and each.name == sharing)
    )


def asked_of(pod: Pod, policy: TierPolicy) -> Mapping[str, Decimal]:
    """Return the amount that a pod asks for of each resource that counts, without its weight.

    Containers share no GPU, so one container's request describes no GPU of another.
    """
    counted = [name for name in set().union(*_asked_by_container(pod)) if name in policy.weights]
    if len(counted) <= 1:  # nearly always
        return {name: peak_request(pod, partial(_amount, name, policy)) for name in counted}
    known: dict[str, Mapping[str, Decimal]] = {}

    def once(name: str, container: Container, path: str) -> Decimal:
        if path not in known:
            named = (each for each in container.resources.asked if each in counted)
            asked = {each: _amount(each, policy, container, path) for each in named}
            known[path] = policy.weights.of_container(asked)
        return known[path].get(name, NOTHING)

    amounts = {name: peak_request(pod, partial(once, name)) for name in counted}
    return policy.weights.without_cards({name: amount for name, amount in amounts.items() if amount})


def _asked_by_container(pod: Pod) -> Iterator[set[str]]:
    for _, container in pod.spec.every_container():
        yield {name for name, amount in container.resources.asked.items() if amount not in _NONE}


def peak_request(pod: Pod, count: Callable[[Container, str], Decimal]) -> Decimal:
    """Return the pod's effective request: its maximum at any moment of its life.

    `count` returns a container's request, at its field path.
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


def _amount(resource: str, policy: TierPolicy, container: Container, path: str) -> Decimal:
    value = container.resources.asked.get(resource)
    if value is None:
        return NOTHING
    part = "requests" if resource in container.resources.requests else "limits"
    return policy.weights.gpus(resource, value, f"{path}.resources.{part}.{resource}")


def _once(devices: Collection[Devices]) -> Iterable[Devices]:
    """Yield the devices of each ResourceClaim once, though a pod may name it twice."""
    if not devices:  # nearly always
        return ()
    named = {(each.claim, each.request, each.device_class, each.profile): each for each in devices if each.claim}
    return (*(each for each in devices if not each.claim), *named.values())


def _claimed(devices: Devices, policy: TierPolicy) -> Decimal:
    return policy.weights.of_devices(devices.device_class, devices.profile) * devices.count


def unlisted_warnings(pod: Pod, policy: TierPolicy) -> tuple[AdmissionWarning, ...]:
    """Warn of resources and annotations that look like GPUs and that the policy does not list."""
    warnings, weights = list[AdmissionWarning](), policy.weights
    for name in (*_unlisted(pod, policy), *_annotations(pod, policy)):
        counts = Phrase("not-counted")
        if name in weights:
            adds = name in asked_of(pod, policy)
            counts = Phrase("counts-as", gpus=weights[name]) if adds else Phrase("adds-nothing")
        # A listed resource was meant, such as nvidia.com/gpu by nvidia.com/gpus, or the author has to ask.
        meant = name.lower().removesuffix("s")
        way = Phrase("meant", meant=meant) if meant in weights.listed else Phrase("ask-to-list")
        warnings.append(AdmissionWarning("gpu-not-counted", name=name, counts=counts, way=way))
    return tuple(warnings)


def not_counted(pod: Pod, policy: TierPolicy) -> tuple[str, ...]:
    """Return a pod's resources and annotations that look like GPUs and count in no quota."""
    return (*(name for name in _unlisted(pod, policy) if name not in policy.weights), *_annotations(pod, policy))


def refuse_unlisted(pod: Pod, policy: TierPolicy) -> None:
    """Raise Refused for a resource that looks like GPUs and that the policy does not list."""
    for name in _unlisted(pod, policy):
        asked = ((where, each.resources) for where, each in pod.spec.every_container())
        where = next(where for where, each in asked if name in {**each.limits, **each.requests})
        raise Refused(Reason.INVALID, "gpu-not-listed", f"{where}.resources", name=name)


def _unlisted(pod: Pod, policy: TierPolicy) -> Iterator[str]:
    weights, asked = policy.weights, tuple(_asked_by_container(pod))
    for name in sorted({name for names in asked for name in names if weights.is_unlisted(name)}):
        if not all(weights.is_described_by_another(name, names) for names in asked if name in names):
            yield name


def _annotations(pod: Pod, policy: TierPolicy) -> Iterator[str]:
    counted = {each.annotation for each in policy.shares}
    annotations = pod.metadata.annotations
    yield from (f"annotation {each}" for each in ANNOTATIONS if each not in counted and annotations.get(each))


CLAIMED = "gpu-tiers.dev/claimed"
"""The annotation with the GPUs of each entry of `resourceClaims` that asks for some: "gpu=2,other=0.5"."""
_ENTRY = re.compile(r"([a-z0-9-]{1,63})=([0-9]{1,6}(?:\.[0-9]{1,9})?)", re.ASCII)


def gpus_of(devices: Collection[Devices], policy: TierPolicy) -> Decimal:
    return demand_of(Pod(), devices, policy)


def claimed(devices: Collection[Devices], policy: TierPolicy) -> str:
    """Return the annotation's value for a pod whose claims have these devices; "" if they count nothing."""
    entries = dict.fromkeys(each.entry for each in devices)
    counted = ((entry, gpus_of([each for each in devices if each.entry == entry], policy)) for entry in entries)
    return ",".join(f"{entry}={written(gpus)}" for entry, gpus in counted if gpus)


def misstated(pod: Pod, due: str) -> Refusal | None:
    """Return why a pod is refused whose annotation differs from the value that is due; None if it agrees."""
    there = pod.metadata.annotations.get(CLAIMED, "")
    if there == due:
        return None
    mark = _field(CLAIMED)
    return Refusal(Reason.CHANGED, "claims-misstated", mark=mark, there=there or "absent", due=due or "absent")


def outgrown(pod: Metadata, entry: str, asked: Decimal) -> Refusal | None:
    """Return why a ResourceClaim that asks for so many GPUs is refused; None if its pod was admitted with as many.

    `entry` is the claim's name in the pod.
    """
    most = admitted_with(pod).get(entry, NOTHING)
    if asked <= most:
        return None
    return Refusal(Reason.CHANGED, "claim-outgrown", "spec.devices", gpus=asked, pod=pod.name, most=most, claim=entry)


def refusal_of_group_claim(claim: Metadata, asked: Decimal) -> Refusal | None:
    """Return why a PodGroup's ResourceClaim is refused: it exists before its pods, and stays when they are gone.

    None for the claim of any other owner.
    """
    owner = claim.controller
    if owner is None or (owner.group, owner.kind) != POD_GROUP:
        return None
    return Refusal(Reason.INVALID, "claim-for-group", "metadata.ownerReferences", group=owner.name, gpus=asked)


def admitted_with(pod: Metadata) -> Mapping[str, Decimal]:
    """Return the GPUs that a pod was admitted with, by the entries of its claims."""
    there = pod.annotations.get(CLAIMED)
    return {name: Decimal(gpus) for name, gpus in _ENTRY.findall(there)} if there else {}


def not_made(pod: Pod, devices: Collection[Devices], policy: TierPolicy) -> tuple[Decimal, dict[str, Decimal]]:
    """Return the GPUs that a pod was admitted with beyond its `devices`: its own, and the shared ones by ResourceClaim.

    Its claim does not exist yet, or is gone, or was made again with less: a claim for the full number may come at any
    time. A nodeName is no proof that a claim was allocated, because the pod's author may have written it.
    """
    own, shared, admitted = NOTHING, dict[str, Decimal](), admitted_with(pod.metadata)
    for claim in pod.spec.resource_claims if admitted else ():
        there = gpus_of([each for each in devices if each.entry == claim.name], policy)
        more = max(admitted.get(claim.name, NOTHING) - there, NOTHING)
        if claim.resource_claim_name is None:
            own += more
        elif more:
            key = f"{pod.metadata.namespace}/{claim.resource_claim_name}"
            shared[key] = max(more, shared.get(key, NOTHING))
    return own, shared
