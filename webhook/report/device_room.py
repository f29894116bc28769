"""What devices there are for a pod that waits for GPUs of DRA, and who holds them.

kube-scheduler evicts nobody for devices, so nobody is shown as one that may be evicted.
"""

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal

import msgspec

from webhook.objects.refusal import first_of
from webhook.policy.devices import DeviceClaim, DeviceKey, Inventory, WantedDevices
from webhook.report.pending import MOST_NAMED, GpuHolder, Holders, NodeForPod, Room, Waiting, tenant_of_holder
from webhook.report.shown import Gpus, as_number

EVICTS_NOBODY = "kube-scheduler evicts nobody for devices of DRA, whatever the tiers: it waits until their holders end."


class DeviceUse(msgspec.Struct, frozen=True):
    """The devices that there are and what claims hold, with the pods that are known, by their uid."""

    there: Inventory
    pods: Mapping[str, GpuHolder] = msgspec.field(default_factory=dict)


def room_by_devices(waiting: Waiting, wanted: WantedDevices, nodes: Sequence[NodeForPod], use: DeviceUse) -> Room:
    """Return the room for one request of a pod, on the nodes that would take the pod."""
    # 1. The devices there that would do, whoever holds them.
    asks = f"{wanted.count} {wanted.device_class}"
    names, there = {each.name for each in nodes if not each.obstacle}, use.there
    told = {key: there.does(key, wanted) for key, device in there.devices.items() if device.node in names}
    fitting = [key for key, does in told.items() if does]
    unknown = sum(does is None for does in told.values())
    if not fitting:
        return Room(asks, tuple(_no_device(wanted.device_class, unknown, some=bool(told))))

    # 2. Those that nobody holds, and whose taints the request tolerates.
    free = {there.devices[key].node: Decimal(0) for key in fitting}
    plain = wanted.plain
    for key in fitting:
        if key not in there.holders and there.untolerated(key, wanted) is None:
            free[there.devices[key].node] += 1
            plain = plain and there.devices[key].whole
    sentences = [*_free(wanted, free, plain=plain)]
    if sentences and plain:
        return Room(asks, tuple(sentences), _numbers(free))

    # 3. Nothing comes free but by the end of a holder.
    if unknown:
        sentences.append(f"Whether {unknown} other devices would do, the scheduler alone can tell.")
    if not sentences:
        nodes_have = (
            f"the {len(free)} nodes that have such devices have" if len(free) > 1 else f"{next(iter(free))} has"
        )
        total, needs = sum(free.values(), Decimal(0)), f"{_devices(wanted.count)} of {wanted.device_class}"
        sentences.append(f"It needs {needs} on one node, and {nodes_have} {total} free.")
    sentences += [EVICTS_NOBODY, *_not_to_be_had(wanted, fitting, use)]
    return Room(asks, tuple(sentences), _numbers(free), tuple(_holders(waiting, fitting, use)))


def _numbers(free: Mapping[str, Decimal]) -> dict[str, Gpus]:
    return {name: as_number(count) for name, count in free.items()}


def _no_device(device_class: str, unknown: int, *, some: bool) -> Iterator[str]:
    if unknown:
        yield f"Whether a device passes the selectors of {device_class} and its request, the scheduler alone can tell."
        yield EVICTS_NOBODY
    elif some:
        yield f"No device on the nodes that take it passes the selectors of {device_class} and of its request."
    else:
        yield f"No node that takes it has devices for DeviceClass {device_class} in a ResourceSlice."


def _free(wanted: WantedDevices, free: Mapping[str, Decimal], *, plain: bool) -> Iterator[str]:
    """Say that some node has enough of them."""
    for node in [name for name, left in free.items() if left >= wanted.count][:1]:
        there = f"{node} has {_devices(free[node])} of {wanted.device_class} free"
        if plain:
            yield f"{there}, so it is not these that it waits for."
        else:
            yield f"{there}, but whether they would do together, the scheduler alone can tell."


def _devices(count: Decimal | int) -> str:
    return f"{count} device" if count == 1 else f"{count} devices"


def _not_to_be_had(wanted: WantedDevices, fitting: Sequence[DeviceKey], use: DeviceUse) -> Iterator[str]:
    """Say which devices a taint keeps from it, and which claims hold some for nobody."""
    tainted: dict[str, list[str]] = {}
    for_nobody: dict[str, None] = {}
    for key in fitting:
        taint, held = use.there.untolerated(key, wanted), use.there.holders.get(key)
        if taint is not None:
            text = f"{taint.key}={taint.value}:{taint.effect}" if taint.value else f"{taint.key}:{taint.effect}"
            tainted.setdefault(text, []).append(_place(key, use))
        if held is not None and not held[0].status.reserved_for:
            for_nobody[f"{held[0].key} (device {_place(key, use)})"] = None
    for text, places in tainted.items():
        yield f"Its request does not tolerate the taint {text} of device {first_of(places, MOST_NAMED)}."
    if for_nobody:
        claims = first_of([*for_nobody], MOST_NAMED)
        yield f"Held by a ResourceClaim that is reserved for nobody: {claims}."


def _place(key: DeviceKey, use: DeviceUse) -> str:
    return f"{key.device} on {use.there.devices[key].node}"


def _holders(waiting: Waiting, fitting: Sequence[DeviceKey], use: DeviceUse) -> Iterator[Holders]:
    """The highest priority first."""
    groups: dict[tuple[int, str, str, str], dict[str, None]] = {}
    devices: dict[tuple[int, str, str, str], set[DeviceKey]] = {}
    for key in fitting:
        claim = use.there.holders[key][0] if key in use.there.holders else None
        for user in claim.status.reserved_for if claim else ():
            holder, name = use.pods.get(user.uid), f"{claim.metadata.namespace}/{user.name}" if claim else ""
            pod = holder or GpuHolder(name, "", {}, 0, "not known", None)
            of_group = user.resource != "pods"
            why = f"PodGroup {name}: free when the group is deleted" if of_group else _why(waiting, claim, holder)
            group = (-pod.priority, pod.tier or "no tier", tenant_of_holder(pod), why)
            groups.setdefault(group, {})[pod.name] = None
            devices.setdefault(group, set()).add(key)
    for group, names in sorted(groups.items(), key=lambda item: item[0]):
        _, tier, tenant, why = group
        yield Holders(tier, tenant, len(devices[group]), tuple(sorted(names)), why)


def _why(waiting: Waiting, claim: DeviceClaim | None, holder: GpuHolder | None) -> str:
    if holder is not None and holder.ends_in is not None:
        return "is ending: its devices come free when it has ended"
    if claim is not None and claim.is_named:
        pods = len(claim.status.reserved_for)
        shared = f"shared by {pods} pods" if pods > 1 else "named by the pod"
        return f"ResourceClaim {claim.key}, {shared}: free when no pod uses it"
    if holder is None:
        return "nobody is evicted for devices of DRA"
    if holder.priority > waiting.priority:
        return "higher priority"
    if holder.priority == waiting.priority:
        return "the same priority"
    return "lower, but nobody is evicted for devices of DRA"
