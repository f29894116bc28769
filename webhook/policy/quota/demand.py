"""Counts the GPUs that a pod holds when it runs, as the scheduler does, and finds those that the policy does not list.

Devices are given to ResourceClaims, and those are made after their pods, or deleted and made again. So an annotation
keeps the GPUs that a pod's claims asked for when it was admitted: no claim of it may ask for more later, and it is
charged no less while it exists.

Source: the effective request of a pod with sidecars, KEP-753. A part of a GPU is asked for by annotations, of a
scheduler that shares a GPU between pods: docs/gpu-sharing of KAI Scheduler and Run:ai, and the validation of their
admission webhook.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from decimal import ROUND_UP, Decimal

from msgspec.structs import replace

from webhook.objects.group_kind import POD_GROUP
from webhook.objects.pods import Container, Metadata, Pod, Quantity
from webhook.objects.quantities import MOST_GPUS, is_parameter, written
from webhook.objects.refusal import AdmissionWarning, Phrase, Reason, Refusal, Refused
from webhook.policy.values.tier_policy import TierPolicy
from webhook.policy.workloads.workload import Devices, Member

FRACTION, MEMORY, DEVICES = "gpu-fraction", "gpu-memory", "gpu-fraction-num-devices"
CONTAINER = "gpu-fraction-container-name"
"""Names the container that has the part; without it that is the first."""
ANNOTATIONS = (FRACTION, MEMORY)

_NUMBER = re.compile(r"[+]?(?:[0-9]{1,20}(?:\.[0-9]{0,20})?|\.[0-9]{1,20})(?:[eE][+-]?[0-9])?")
_EXACT = Decimal("0.000001")
"""What a weight in the policy is exact to, too; parts are rounded up to it, so that a sum of them is exact."""
_WHOLE = Decimal(1)


def share_of(pod: Pod, whole: Decimal, policy: TierPolicy) -> Decimal:
    """The GPUs, weighted, of which an annotation asks a part; `whole` is what the containers ask for by name.

    Raises Refused naming the annotation where it can't be read, or asks for what is asked for elsewhere as well.
    """
    asked = next((each for each in policy.shares if pod.metadata.annotations.get(each.annotation)), None)
    if asked is None:
        return Decimal(0)
    annotations, field = pod.metadata.annotations, _field(asked.annotation)
    value = annotations[asked.annotation]
    for other in ANNOTATIONS:
        if other != asked.annotation and annotations.get(other):
            raise Refused(
                Reason.INVALID, "two-parts", field, value=value, other=_field(other), other_value=annotations[other]
            )
    if whole:
        raise Refused(Reason.INVALID, "part-and-whole", field, value=value)
    if is_parameter(value):
        part = _WHOLE
    elif asked.memory is not None:  # a part lies on one GPU, so it is no more than all of it
        part = min(_count(MEMORY, value, "no-gpu-memory") / asked.memory, _WHOLE)
    else:
        part = Decimal(value) if _NUMBER.fullmatch(value) else Decimal(0)
        if not 0 < part < 1:
            raise Refused(Reason.INVALID, "no-part", field, value=value)
    on = annotations.get(DEVICES, "1")
    count = _WHOLE if is_parameter(on) else _count(DEVICES, on, "no-part-count")
    return part.quantize(_EXACT, ROUND_UP) * count * asked.weight


def holder_by(asking: Iterable[str], pod: Pod) -> str | None:
    """The name of the container that has the part for which one of these annotations asks; None where none does."""
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
    """The GPUs a pod holds, weighted; `devices` are those of its resource claims."""
    own = sum((held * policy.weights[name] for name, held in asked_of(pod, policy).items()), NOTHING)
    if policy.shares:
        own += share_of(pod, own, policy)
    return own + sum((_claimed(each, policy) for each in _once(devices)), NOTHING)


def used_gpus(pod: Pod, devices: Collection[Devices], policy: TierPolicy) -> Decimal:
    """The same of a pod that exists: a share that can't be read, its scheduler does not read either."""
    try:
        return demand_of(pod, devices, policy)
    except Refused:
        return demand_of(pod, devices, replace(policy, shares=()))


def shared_by(devices: Collection[Devices], policy: TierPolicy) -> Mapping[str, Decimal]:
    """The part of a pod's GPUs that it may share with other pods: by ResourceClaim, as namespace/name."""
    shared: dict[str, Decimal] = {}
    for each in _once(devices):
        if each.claim and _claimed(each, policy):
            shared[each.claim] = shared.get(each.claim, NOTHING) + _claimed(each, policy)
    return shared


def gpus_of_pods(count: int, gpus: Decimal, shared: Mapping[str, Decimal]) -> Decimal:
    """The GPUs of so many like pods, of which they share a part."""
    in_common = sum(shared.values(), NOTHING)
    return (gpus - in_common) * count + in_common if count else NOTHING


def hold_gpus(members: Iterable[Member], policy: TierPolicy) -> bool:
    """Tells whether a workload's pods belong to a gang that holds GPUs, even if it runs none of those pods now."""
    return any(demand_of(member.template, member.devices, policy) > 0 for member in members)


def may_hold_gpus(pod: Pod, policy: TierPolicy) -> bool:
    """Tells whether a pod asks for GPUs, or for claims of which it can't be told from the pod alone."""
    return bool(pod.spec.resource_claims) or demand_of(pod, (), policy) > 0


def asks_for_gpus(container: Container, devices: Iterable[Devices], policy: TierPolicy) -> bool:
    """Tells whether a container by itself holds a GPU, by name or by a claim: where a checkpoint hook belongs."""
    weights, asked = policy.weights, _requests(container)
    by_name = any(name in weights and weights.gpus(name, value, name) > 0 for name, value in asked.items())
    # A claim that no container uses is held, and given to none.
    uses = {(used.name, used.request) for used in container.resources.claims}
    given = (each for each in devices if {(each.entry, ""), (each.entry, each.request)} & uses)
    return by_name or any(_claimed(each, policy) > 0 for each in given)


def gpu_holders(pod: Pod, devices: Collection[Devices], policy: TierPolicy) -> tuple[int, ...]:
    """The indices of the app containers that hold GPUs, or the pod's part of one."""
    sharing = holder_by((each.annotation for each in policy.shares), pod) if policy.shares else None
    return tuple(
        index
        for index, each in enumerate(pod.spec.containers)
        if asks_for_gpus(each, devices, policy) or (sharing is not None and each.name == sharing)
    )


def asked_of(pod: Pod, policy: TierPolicy) -> Mapping[str, Decimal]:
    """The amount that a pod holds of each resource name that counts, unweighted.

    Containers share no GPU, so what one asks for describes no GPU of another.
    """
    counted = [name for name in set().union(*_asked_by_container(pod)) if name in policy.weights]
    if len(counted) <= 1:  # nearly always
        return {name: peak_request(pod, _counter(name, policy)) for name in counted}
    counters, known = {name: _counter(name, policy) for name in counted}, dict[str, Mapping[str, Decimal]]()

    def once(container: Container, path: str) -> Mapping[str, Decimal]:
        if path not in known:
            named = (name for name in _requests(container) if name in counters)
            known[path] = policy.weights.of_container({name: counters[name](container, path) for name in named})
        return known[path]

    def counter(name: str) -> Callable[[Container, str], Decimal]:
        return lambda container, path: once(container, path).get(name, NOTHING)

    held = {name: peak_request(pod, counter(name)) for name in counted}
    return policy.weights.beside_cards({name: amount for name, amount in held.items() if amount})


def _asked_by_container(pod: Pod) -> Iterator[set[str]]:
    for _, container in pod.spec.every_container():
        yield {name for name, amount in _requests(container).items() if amount not in _NONE}


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


def _counter(resource: str, policy: TierPolicy) -> Callable[[Container, str], Decimal]:
    def count(container: Container, path: str) -> Decimal:
        value = _requests(container).get(resource)
        part = "requests" if resource in container.resources.requests else "limits"
        if value is None:
            return NOTHING
        return policy.weights.gpus(resource, value, f"{path}.resources.{part}.{resource}")

    return count


def _requests(container: Container) -> dict[str, Quantity]:
    """Requests, with limits where there are none: templates arrive without the API server's defaulting."""
    resources = container.resources
    return {**resources.limits, **resources.requests} if resources.limits else resources.requests


def _once(devices: Collection[Devices]) -> Iterable[Devices]:
    """The devices of each ResourceClaim once, though a pod may name it twice."""
    if not devices:  # nearly always
        return ()
    named = {(each.claim, each.request, each.device_class, each.profile): each for each in devices if each.claim}
    return (*(each for each in devices if not each.claim), *named.values())


def _claimed(devices: Devices, policy: TierPolicy) -> Decimal:
    return policy.weights.of_devices(devices.device_class, devices.profile) * devices.count


_UNCOUNTED, _ADDS_NOTHING = Phrase("not-counted"), Phrase("adds-nothing")


def unlisted_warnings(pod: Pod, policy: TierPolicy) -> tuple[AdmissionWarning, ...]:
    """Warn of GPUs that the policy does not list."""
    counts = {name: _counts(name, pod, policy) for name in _unlisted(pod, policy)}
    counts |= dict.fromkeys(_annotations(pod, policy), _UNCOUNTED)
    return tuple(AdmissionWarning("gpu-not-counted", name=name, counts=how) for name, how in counts.items())


def _counts(name: str, pod: Pod, policy: TierPolicy) -> Phrase:
    if name not in policy.weights:
        return _UNCOUNTED
    return Phrase("counts-as", gpus=policy.weights[name]) if name in asked_of(pod, policy) else _ADDS_NOTHING


def not_counted(pod: Pod, policy: TierPolicy) -> tuple[str, ...]:
    """The resources and annotations of a pod that look like GPUs, and that no quota counts."""
    return (*(name for name in _unlisted(pod, policy) if name not in policy.weights), *_annotations(pod, policy))


def refuse_unlisted(pod: Pod, policy: TierPolicy) -> None:
    """Raises Refused for a resource that looks like GPUs and that the policy does not list."""
    for name in _unlisted(pod, policy):
        asked = ((where, each.resources) for where, each in pod.spec.every_container())
        where = next(where for where, each in asked if name in {**each.limits, **each.requests})
        raise Refused(Reason.INVALID, "gpu-not-listed", f"{where}.resources", name=name)


def _unlisted(pod: Pod, policy: TierPolicy) -> Iterator[str]:
    weights, asked = policy.weights, tuple(_asked_by_container(pod))
    for name in sorted({name for names in asked for name in names if weights.is_unlisted(name)}):
        if not all(weights.is_told_by_another(name, names) for names in asked if name in names):
            yield name


def _annotations(pod: Pod, policy: TierPolicy) -> Iterator[str]:
    counted = {each.annotation for each in policy.shares}
    annotations = pod.metadata.annotations
    yield from (f"annotation {each}" for each in ANNOTATIONS if each not in counted and annotations.get(each))


CLAIMED = "gpu-tiers.dev/claimed"
"""The GPUs of each entry of `resourceClaims` that asks for some: "gpu=2,other=0.5"."""
_ENTRY = re.compile(r"([a-z0-9-]{1,63})=([0-9]{1,6}(?:\.[0-9]{1,9})?)", re.ASCII)


def gpus_of(devices: Collection[Devices], policy: TierPolicy) -> Decimal:
    return demand_of(Pod(), devices, policy)


def claimed(devices: Collection[Devices], policy: TierPolicy) -> str:
    """The annotation's value for a pod whose claims have these devices; "" where they count nothing."""
    entries = dict.fromkeys(each.entry for each in devices)
    counted = ((entry, gpus_of([each for each in devices if each.entry == entry], policy)) for entry in entries)
    return ",".join(f"{entry}={written(gpus)}" for entry, gpus in counted if gpus)


def misstated(pod: Pod, due: str) -> Refusal | None:
    """Return why a pod is refused that says something else of its claims than is due; None where it says that."""
    there = pod.metadata.annotations.get(CLAIMED, "")
    if there == due:
        return None
    mark = _field(CLAIMED)
    return Refusal(Reason.CHANGED, "claims-misstated", mark=mark, there=there or "absent", due=due or "absent")


def outgrown(pod: Metadata, entry: str, asked: Decimal) -> Refusal | None:
    """Return why a ResourceClaim is refused that asks for more GPUs than a pod was admitted with that is to hold it."""
    most = let_in_with(pod).get(entry, NOTHING)
    if asked <= most:
        return None
    return Refusal(Reason.CHANGED, "claim-outgrown", "spec.devices", gpus=asked, pod=pod.name, most=most, claim=entry)


def kept_by_group(claim: Metadata, asked: Decimal) -> Refusal | None:
    """Why the ResourceClaim of a PodGroup is refused: it is made before its pods, and stays when they are gone."""
    owner = claim.controller
    if owner is None or (owner.group, owner.kind) != POD_GROUP:
        return None
    return Refusal(Reason.INVALID, "claim-for-group", "metadata.ownerReferences", group=owner.name, gpus=asked)


def let_in_with(pod: Metadata) -> Mapping[str, Decimal]:
    """The GPUs that a pod was admitted with, by the entries of its claims."""
    there = pod.annotations.get(CLAIMED)
    return {name: Decimal(gpus) for name, gpus in _ENTRY.findall(there)} if there else {}


def not_made(pod: Pod, devices: Collection[Devices], policy: TierPolicy) -> tuple[Decimal, dict[str, Decimal]]:
    """The GPUs that a pod was admitted with beyond its `devices`: its own, and those that it shares, by ResourceClaim.

    Its claim is not made yet, or is gone, or was made anew with less: one of as many may come at any time. A node says
    nothing of that, because its author may have written it.
    """
    own, shared, let_in = NOTHING, dict[str, Decimal](), let_in_with(pod.metadata)
    for claim in pod.spec.resource_claims if let_in else ():
        there = gpus_of([each for each in devices if each.entry == claim.name], policy)
        more = max(let_in.get(claim.name, NOTHING) - there, NOTHING)
        if claim.resource_claim_name is None:
            own += more
        elif more:
            key = f"{pod.metadata.namespace}/{claim.resource_claim_name}"
            shared[key] = max(more, shared.get(key, NOTHING))
    return own, shared
