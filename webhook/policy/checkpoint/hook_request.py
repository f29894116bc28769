"""Finds the hook that is asked for: the policy's by tier, else by workload type; annotations come before both.

The annotations are read from the pod, then from its owners, the nearest first.
"""

import re
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any, get_args

import msgspec
from msgspec import structs

from webhook.objects.pods import Pod
from webhook.objects.refusal import Reason, Refused
from webhook.policy.checkpoint.hook_kinds import READERS, completed, missing, reader, takers, unwanted
from webhook.policy.values.tier_policy import Checkpoint, Hook, HookKind
from webhook.policy.workloads.kind_table import WorkloadType
from webhook.policy.workloads.workload import Workload

CHECKPOINT = "gpu-tiers.dev/checkpoint"
TIMEOUT = f"{CHECKPOINT}-timeout"
"""Seconds a save may take, in place of the policy's."""
FIELDS = {name: f"{CHECKPOINT}-{name.replace('_', '-')}" for name in READERS}
"""The annotation of each field of a hook."""
KNOWN = (CHECKPOINT, TIMEOUT, *FIELDS.values())
_KINDS: tuple[HookKind, ...] = get_args(HookKind)


class HookRequest(msgspec.Struct, frozen=True):
    """The hook that is asked for. `by_policy` is what the policy alone would have given.

    `fields` are the places of the annotations that counted, by the field that they set ("kind" is the kind).
    `cap` is the longest grace period that it may ask for, and `uncut` the seconds that were asked for before it.
    """

    hook: Hook
    by_policy: Hook
    fields: Mapping[str, str] = msgspec.field(default_factory=dict)
    cap: int = 0
    uncut: int = 0

    @property
    def by_annotation(self) -> bool:
        """Tells whether an annotation names the kind."""
        return "kind" in self.fields

    @property
    def cut(self) -> bool:
        """Tells whether the cap leaves less time to save than was asked for."""
        return self.hook.seconds < self.uncut


class _Note(msgspec.Struct, frozen=True):
    place: str
    text: str
    distance: int


def requested_hook(
    pod: Pod, workload_type: WorkloadType | None, tier: str | None, owners: Sequence[Workload], checkpoint: Checkpoint
) -> HookRequest:
    """The hook asked for. Raises Refused where an annotation asks for what can't be done."""
    by_tier = checkpoint.tiers.get(tier) if tier else None
    by_type = checkpoint.hooks.get(workload_type) if workload_type else None
    by_policy = by_tier or by_type or Hook()
    carriers = [("metadata", pod.metadata.annotations), *((each.metadata_place, each.annotations) for each in owners)]
    noted = any(key.startswith(CHECKPOINT) for _, notes in carriers for key in notes)
    found = _found(carriers) if noted else {}
    hook = _annotated(found, by_policy, checkpoint) if found else by_policy
    # What is beyond a tier's cap is cut and not refused: the tier may be one that nobody asked for.
    most = longest_save(checkpoint, tier)
    within = structs.replace(hook, seconds=min(hook.seconds, most))
    fields = {name: note.place for name, note in found.items()}
    return HookRequest(within, by_policy, fields, most + checkpoint.margin, hook.seconds)


_KEYS = {"kind": CHECKPOINT, "seconds": TIMEOUT, **FIELDS}
_Carriers = Sequence[tuple[str, Mapping[str, str]]]


def _found(carriers: _Carriers) -> Mapping[str, _Note]:
    """The nearest note of each field. What an owner says of its own kind of hook says nothing of another kind."""
    found: dict[str, _Note] = {}
    for (name, key), (distance, (where, notes)) in product(_KEYS.items(), enumerate(carriers)):
        if key in notes and name not in found:
            found[name] = _Note(f"{where}.annotations[{key}]", notes[key], distance)
    if "kind" not in found:
        return found
    near = found["kind"].distance
    return {name: note for name, note in found.items() if name == "seconds" or note.distance <= near}


def _annotated(found: Mapping[str, _Note], by_policy: Hook, checkpoint: Checkpoint) -> Hook:
    kind = _kind(found["kind"]) if "kind" in found else by_policy.kind
    given = {name: _value(kind, name, note) for name, note in found.items() if name in FIELDS}
    seconds = _seconds(found["seconds"], checkpoint) if "seconds" in found else None
    if kind == by_policy.kind:
        return structs.replace(by_policy, seconds=seconds or by_policy.seconds, **given)
    lacking = missing(kind, given)
    if lacking is not None:
        place, key = found["kind"].place, FIELDS[lacking]
        raise Refused(Reason.HOOK, "hook-field-missing", place, kind=kind, lacking=lacking, key=key)
    # The policy's time for a save, whichever hook asks for it. The time of a `sleep` is no time for a save.
    other = "none" in (kind, by_policy.kind) or "sleep" in (kind, by_policy.kind)
    return completed(kind, seconds or (None if other else by_policy.seconds), given)


def _kind(note: _Note) -> HookKind:
    kind = next((kind for kind in _KINDS if kind == note.text), None)
    if kind is None:
        raise Refused(Reason.HOOK, "hook-kind-unknown", note.place, value=note.text, kinds=tuple(_KINDS))
    return kind


def _value(kind: HookKind, name: str, note: _Note) -> Any:
    if unwanted(kind, [name]):
        raise Refused(
            Reason.HOOK,
            "hook-field-unwanted",
            note.place,
            kind=kind,
            name=name.replace("_", " "),
            key=CHECKPOINT,
            takers=takers(name),
        )
    try:
        return reader(kind, name)(note.text)
    except ValueError as error:
        raise Refused(Reason.HOOK, "hook-value-wrong", note.place, value=note.text, error=str(error)) from None


def longest_save(checkpoint: Checkpoint, tier: str | None = None) -> int:
    """The seconds for which a capped grace period has room: that of a tier's pods, or of any."""
    return checkpoint.tier_caps.get(tier or "", checkpoint.max_grace_period) - checkpoint.margin


def _seconds(note: _Note, checkpoint: Checkpoint) -> int:
    seconds = int(note.text) if re.fullmatch("[0-9]{1,6}", note.text) else 0
    most = longest_save(checkpoint)
    if not 0 < seconds <= most:
        raise Refused(Reason.HOOK, "hook-time-wrong", note.place, value=note.text, most=most)
    return seconds
