"""The reason why a pod finds no devices of DRA: those on nodes that would accept it, and their holders."""

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal

import msgspec

from webhook.objects.refusal import first_of
from webhook.policy.devices import DeviceClaim, DeviceKey, Inventory, WantedDevices
from webhook.report.pending import MOST_NAMED, GpuHolder, NodeForPod, Room, Waiting, grouped
from webhook.report.shown import Gpus

EVICTS_NOBODY = (
    "kube-scheduler evicts nobody for devices of DRA, whatever the tiers: the pod starts once devices are free."
)


class DeviceUse(msgspec.Struct, frozen=True):
    """The existing devices and the claims on them, with the known pods, by their uid.

    `evictions` are the sentences on who is evicted for devices. `lower` says whether a pod of a lower priority may be
    evicted, except in the namespaces that are `exempt`.
    """

    there: Inventory
    pods: Mapping[str, GpuHolder] = msgspec.field(default_factory=dict)
    evictions: tuple[str, ...] = (EVICTS_NOBODY,)
    lower: str = "no: lower priority, but nobody is evicted for devices of DRA"
    exempt: frozenset[str] = frozenset()


def room_by_devices(waiting: Waiting, wanted: WantedDevices, nodes: Sequence[NodeForPod], use: DeviceUse) -> Room:
    """Return the room for one request of a pod, on the nodes that would accept the pod."""
    # 1. The devices there that fit, whoever holds them.
    asks = f"{wanted.count} {wanted.device_class}"
    names, there = {each.name for each in nodes if not each.obstacle}, use.there
    answers = {key: there.does(key, wanted) for key, device in there.devices.items() if device.node in names}
    fitting = [key for key, does in answers.items() if does]
    unknown = sum(does is None for does in answers.values())
    if not fitting:
        selectors = f"the selectors of {wanted.device_class} and of its request"
        why = f"No node that accepts it has devices for DeviceClass {wanted.device_class} in a ResourceSlice."
        if answers:
            why = f"No device on the nodes that accept it passes {selectors}."
        by_scheduler = (f"Only the scheduler knows whether a device passes {selectors}.", *use.evictions)
        return Room(asks, by_scheduler if unknown else (why,))

    # 2. The unused ones among them whose taints the request tolerates.
    free: dict[str, Gpus] = dict.fromkeys((there.devices[key].node for key in fitting), 0)
    plain = wanted.plain
    for key in fitting:
        if key not in there.holders and there.untolerated(key, wanted) is None:
            free[there.devices[key].node] += 1
            plain = plain and there.devices[key].whole
    sentences = []
    for node in [name for name, left in free.items() if left >= wanted.count][:1]:
        has = f"{node} has {_devices(free[node])} of {wanted.device_class} free"
        if plain:
            return Room(asks, (f"It does not wait for devices: {has}.",), free)
        sentences.append(f"{has}, but only the scheduler knows whether they fit its request.")

    # 3. Only the end of a holder frees a device.
    if unknown:
        sentences.append(f"Only the scheduler knows whether {unknown} other devices fit its request.")
    if not sentences:
        nodes_have = (
            f"the {len(free)} nodes that have such devices have" if len(free) > 1 else f"{next(iter(free))} has"
        )
        needs = f"{_devices(wanted.count)} of {wanted.device_class}"
        sentences.append(f"It waits for {needs} on one node: {nodes_have} {sum(free.values())} free.")
    sentences += [*use.evictions, *_not_to_be_had(wanted, fitting, use)]
    return Room(asks, tuple(sentences), free, grouped(_device_holders(waiting, fitting, use)))


def _devices(count: Gpus) -> str:
    return f"{count} device" if count == 1 else f"{count} devices"


def _not_to_be_had(wanted: WantedDevices, fitting: Sequence[DeviceKey], use: DeviceUse) -> Iterator[str]:
    """Yield sentences on devices with a taint that the request does not tolerate, and on claims reserved for no pod."""
    tainted: dict[str, list[str]] = {}
    for_nobody: dict[str, None] = {}
    for key in fitting:
        taint, holder = use.there.untolerated(key, wanted), use.there.holders.get(key)
        if taint is not None:
            text = f"{taint.key}={taint.value}:{taint.effect}" if taint.value else f"{taint.key}:{taint.effect}"
            tainted.setdefault(text, []).append(_place(key, use))
        if holder is not None and not holder[0].status.reserved_for:
            for_nobody[f"{holder[0].key} (device {_place(key, use)})"] = None
    for text, places in tainted.items():
        yield f"Its request does not tolerate the taint {text} of device {first_of(places, MOST_NAMED)}."
    if for_nobody:
        claims = first_of([*for_nobody], MOST_NAMED)
        yield f"Held by a ResourceClaim that is reserved for nobody: {claims}."


def _place(key: DeviceKey, use: DeviceUse) -> str:
    return f"{key.device} on {use.there.devices[key].node}"


def _device_holders(
    waiting: Waiting, fitting: Sequence[DeviceKey], use: DeviceUse
) -> Iterator[tuple[GpuHolder, str, object, Decimal]]:
    for key in fitting:
        claim = use.there.holders[key][0] if key in use.there.holders else None
        for user in claim.status.reserved_for if claim else ():
            holder, name = use.pods.get(user.uid), f"{claim.metadata.namespace}/{user.name}" if claim else ""
            of_group = user.resource != "pods"
            lower = f"no: PodGroup {name}: free when the group is deleted"
            why = lower if of_group else _why_taken(waiting, claim, holder, use)
            yield holder or GpuHolder(name, "", {}, 0, "not known", None), why, key, Decimal(1)


def _why_taken(waiting: Waiting, claim: DeviceClaim | None, holder: GpuHolder | None, use: DeviceUse) -> str:
    if holder is not None and holder.ends_in is not None:
        return "ending: its devices become free when it has ended"
    if claim is not None and claim.is_named:
        pods = len(claim.status.reserved_for)
        shared = f"shared by {pods} pods" if pods > 1 else "named by the pod"
        return f"no: ResourceClaim {claim.key}, {shared}: free when no pod uses it"
    if holder is None:
        return "no: nobody is evicted for devices of DRA"
    if holder.priority > waiting.priority:
        return "no: higher priority"
    if holder.priority == waiting.priority:
        return "no: the same priority"
    exempt = holder.name.partition("/")[0] in use.exempt
    return "no: lower priority, but its namespace is exempt" if exempt else use.lower
