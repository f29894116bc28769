"""Classifies a workload by evidence: proof first, then guesses, then the usual use."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache

from msgspec import structs

from webhook.objects.pods import Pod
from webhook.policy.classification.clues import (
    by_answering,
    by_image,
    by_kind,
    by_listening,
    by_name,
    by_names,
    by_one_off_task,
    by_port,
    by_probe,
    by_server,
    by_variable,
    by_what_is_around,
    is_system_image,
    variable_hint,
)
from webhook.policy.classification.commands import by_command, command_hints
from webhook.policy.classification.evidence import SHOWN, Evidence, Hint, Subject
from webhook.policy.quota.demand import may_hold_gpus
from webhook.policy.values.tier_policy import Grade, TierPolicy
from webhook.policy.workloads.kind_table import EVERY_SOURCE, KindTable, Source, WorkloadType
from webhook.policy.workloads.workload import Workload

SOURCES: Mapping[Source, Callable[[Subject], Hint | None]] = {
    "command": by_command,
    "variable": by_variable,
    "kind": by_kind,
    "task": by_one_off_task,
    "image": by_image,
    "names": by_names,
    "name": by_name,
    "probe": by_probe,
    "port": by_port,
    "listens": by_listening,
    "server": by_server,
    "answers": by_answering,
    "around": by_what_is_around,
}
"""The sources of guesses. A row of the table of kinds says which are asked, and in which order."""

_OF_NOBODY: tuple[Source, ...] = ("command", "variable", "kind", *EVERY_SOURCE[2:], "listens", "around")


def classify(pod: Pod, owners: Sequence[Workload], kinds: KindTable) -> Evidence | None:
    """The workload type with its evidence; None where nothing tells. Owners are the nearest first."""
    return _proven_by_kind(pod, owners) or _proven_by_label(pod, owners, kinds) or _of_launcher(pod, owners, kinds)


def classify_workload(own: Workload, policy: TierPolicy) -> Evidence | None:
    """The type of a workload as it is applied. Where only its operator knows the GPUs, only proof counts."""
    holding = [member for member in own.members if may_hold_gpus(member.template, policy)]
    if not holding and not own.brings_gpus:
        return None
    owners = (*(each for each in holding[0].makers if not each.place), own) if holding else (own,)
    found = classify(holding[0].template if holding else Pod(), owners, policy.kinds)
    if found is None or holding or own.row.gpu_fields:
        return found
    return found if Grade.Proven in (found.grade, found.otherwise and found.otherwise.grade) else None


def _proven_by_kind(pod: Pod, owners: Sequence[Workload]) -> Evidence | None:
    for owner in owners:
        row = owner.row
        if row.type is not None:
            return _unless(Subject.of(pod, owners), row.unless, Evidence(row.type, f"its kind, {owner}"))
        if owner.type is not None:
            return Evidence(owner.type, f"the fields of {owner}")
    return None


def _proven_by_label(pod: Pod, owners: Sequence[Workload], kinds: KindTable) -> Evidence | None:
    known = kinds.telling_labels
    carriers = [pod.metadata.labels, *(owner.labels for owner in owners)]
    told = [
        pair
        for labels in carriers
        for key in known.keys() & labels.keys()
        for pair in known[key]
        if pair[1].value in (None, labels[key])
    ]
    if not told:
        return None
    _, label = min(told)
    member = not kinds.gang_labels.isdisjoint(pod.metadata.labels)
    return _unless(Subject.of(pod, owners, member=member), label.unless, Evidence(label.type, f"its label {label.key}"))


def _of_launcher(pod: Pod, owners: Sequence[Workload], kinds: KindTable) -> Evidence | None:
    """Tell what runs in a general launcher, else what the launcher is mostly used for.

    The outermost owner's row says which guesses come first: a JobSet says more than the Jobs it is made of.
    """
    member = not owners and not kinds.gang_labels.isdisjoint(pod.metadata.labels)
    subject = Subject.of(pod, owners, member=member)
    if any(is_system_image(image) for image in subject.images()):  # an exporter, a device plugin, a driver
        return None
    owner = _outermost(owners)
    usual = _usual_use(subject, owner, kinds)
    sources = owner.row.before_usual if owner else _OF_NOBODY
    return _unless(subject, sources, usual) if usual else _guess(subject, sources)


def _unless(subject: Subject, sources: Sequence[Source], stands: Evidence) -> Evidence:
    """The given evidence, unless a guess says another type: then that guess, which remembers the evidence.

    A guess that shows the same type confirms the usual use of a launcher.
    """
    found = _guess(subject, sources)
    if found is None:
        return stands
    if found.type is stands.type and found.grade <= stands.grade:
        return structs.replace(stands, confirmed=found.grade is Grade.Shown)
    return structs.replace(found, otherwise=stands)


def _guess(subject: Subject, sources: Sequence[Source]) -> Evidence | None:
    """The first guess, in the order of the sources, that shows what runs; where none does, the first that hints."""
    for source in _best_first(tuple(sources)):
        hint = SOURCES[source](subject)
        if hint is not None:
            grade = Grade.Shown if source in SHOWN else Grade.Hinted
            return Evidence(hint.type, f'its {hint.clue or source} ("{hint.words}")', grade, source)
    return None


@cache
def _best_first(sources: tuple[Source, ...]) -> tuple[Source, ...]:
    """The sources that show before those that only hint: a name or a port takes nothing from what runs."""
    return tuple(sorted(sources, key=lambda source: source not in SHOWN))


def _outermost(owners: Sequence[Workload]) -> Workload | None:
    """The outermost owner that has a usual use, else simply the outermost. What only wraps another says nothing."""
    outwards = tuple(owner for owner in reversed(owners) if not owner.row.wraps) or tuple(owners)
    return next((owner for owner in outwards if owner.row.usual), next(iter(outwards), None))


def _usual_use(subject: Subject, owner: Workload | None, kinds: KindTable) -> Evidence | None:
    """Tell what the launcher of a pod is mostly used for."""
    # 1. Shards by index are batch, whatever their kind's usual use: they wait for one another in no gang.
    shards = next((each for each in subject.owners if each.shards), None)
    if shards is not None:
        told = f"the usual use of Indexed completions above its parallelism, {shards}"
        return Evidence(WorkloadType.BATCH, told, Grade.Usual)
    # 2. The kind of the owner, or a label where that can't be seen.
    if owner is not None:
        return (
            Evidence(owner.row.usual, f"the usual use of its kind, {owner}", Grade.Usual) if owner.row.usual else None
        )
    for key in subject.pod.metadata.labels:
        if key in kinds.usual_labels:
            return Evidence(kinds.usual_labels[key], f"the usual use of what writes its label {key}", Grade.Usual)
    # 3. A bare pod that is made to end is usually batch, as a Job is, if it says what it runs; else that is a hint.
    if not subject.ends:
        return None
    by_hand = subject.pod.metadata.controller is None and any(subject.commands())
    text = f'its restartPolicy ("{subject.pod.spec.restart_policy}")'
    return Evidence(WorkloadType.BATCH, text, Grade.Usual if by_hand else Grade.Hinted)


def make_expressions() -> None:
    """Make the expressions of commands and variables now, because the first review would wait for them."""
    for made in (False, True):
        command_hints("", ends=False, made=made)
    variable_hint("")
