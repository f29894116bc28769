"""Parts of GPUs: what the annotations of a pod ask of a scheduler that shares a GPU between pods.

Source: KAI Scheduler and Run:ai, docs/gpu-sharing and the validation of their admission webhook.
"""

import re
from collections.abc import Iterable
from decimal import ROUND_UP, Decimal

from webhook.objects.pods import Pod
from webhook.objects.quantities import MOST_GPUS, is_parameter
from webhook.objects.refusal import Reason, Refusal, Refused
from webhook.policy.values.tier_policy import GpuShare, TierPolicy

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
    _ask_once(pod, asked, whole)
    part = _part_of(pod.metadata.annotations[asked.annotation], asked)
    return part.quantize(_EXACT, ROUND_UP) * _devices(pod) * asked.weight


def share_holder(pod: Pod, policy: TierPolicy) -> str | None:
    """The name of the container that has the pod's part of a GPU; None where it asks for none that counts."""
    return holder_by((each.annotation for each in policy.shares), pod)


def holder_by(asking: Iterable[str], pod: Pod) -> str | None:
    """The name of the container that has the part for which one of these annotations asks; None where none does."""
    annotations, containers = pod.metadata.annotations, pod.spec.containers
    if not containers or not any(annotations.get(each) for each in asking):
        return None
    named = annotations.get(CONTAINER)
    return named if named in {each.name for each in containers} else containers[0].name


def changed_share(old: Pod, new: Pod, policy: TierPolicy) -> Refusal | None:
    """Why a changed part of a GPU is refused on an existing pod: its tier and charge are of the part it had.

    Also on one in deletion, which holds it for as long as its grace. One annotation beside another, which the policy
    need not count, would leave both unread.
    """
    for annotation in (*ANNOTATIONS, DEVICES) if policy.shares else ():
        before, after = (each.metadata.annotations.get(annotation, "") for each in (old, new))
        if before != after:
            field = _field(annotation)
            return Refusal(Reason.CHANGED, "part-changed", field, after=after or "absent", before=before or "absent")
    return None


def _ask_once(pod: Pod, asked: GpuShare, whole: Decimal) -> None:
    annotations, field = pod.metadata.annotations, _field(asked.annotation)
    value = annotations[asked.annotation]
    for other in ANNOTATIONS:
        if other != asked.annotation and annotations.get(other):
            raise Refused(
                Reason.INVALID, "two-parts", field, value=value, other=_field(other), other_value=annotations[other]
            )
    if whole:
        raise Refused(Reason.INVALID, "part-and-whole", field, value=value)


def _part_of(value: str, asked: GpuShare) -> Decimal:
    if is_parameter(value):
        return _WHOLE
    if asked.memory is not None:  # a part lies on one GPU, so it is no more than all of it
        return min(_count(MEMORY, value, "no-gpu-memory") / asked.memory, _WHOLE)
    number = Decimal(value) if _NUMBER.fullmatch(value) else Decimal(0)
    if not 0 < number < 1:
        raise Refused(Reason.INVALID, "no-part", _field(FRACTION), value=value)
    return number


def _devices(pod: Pod) -> Decimal:
    """On how many GPUs the pod has such a part."""
    value = pod.metadata.annotations.get(DEVICES, "1")
    if is_parameter(value):
        return _WHOLE
    return _count(DEVICES, value, "no-part-count")


def _count(annotation: str, value: str, problem: str) -> Decimal:
    number = int(value) if value.isdecimal() and value.isascii() and len(value) <= len(str(MOST_GPUS)) else 0
    if not 0 < number <= MOST_GPUS:
        raise Refused(Reason.INVALID, problem, _field(annotation), value=value)
    return Decimal(number)


def _field(annotation: str) -> str:
    return f"metadata.annotations[{annotation}]"
