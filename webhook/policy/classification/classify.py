"""Classifies a workload by evidence: proof first, then guesses, then the usual use.

Guesses come from commands (commands.py), and from what surrounds them: names of pod, owners and variables, words of
images, ports and probes.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache

from msgspec import structs

from webhook.objects.pods import Pod
from webhook.objects.view import at
from webhook.policy.classification.commands import COMMANDS, WORDS, by_command, command_hints, pattern_of, runs_a_script
from webhook.policy.classification.evidence import LONGEST, REMEMBERED, SHOWN, Evidence, Hint, Subject, telling
from webhook.policy.quota.demand import may_hold_gpus
from webhook.policy.values.tier_policy import Grade, TierPolicy
from webhook.policy.workloads.kind_table import EVERY_SOURCE, KindTable, Source, WorkloadType
from webhook.policy.workloads.workload import Workload

TRAINING, SERVING, BATCH, INTERACTIVE = WorkloadType

_NAMES = WORDS.name_words.keys() | WORDS.one_off_tasks
_PROGRAM_NAMES = {
    word: workload_type
    for word, workload_type in WORDS.name_words.items()
    if workload_type is not BATCH and WORDS.image_words.get(word) is workload_type and word not in WORDS.script_words
}
"""The words that hint at the same type in names and images. A variable that begins with one is right in 95 % of the
labelled manifests. Words of batch are left out because of BATCH_SIZE."""
_SYSTEM_IMAGE = re.compile(rf"(?<![a-z\d])(?:{'|'.join(sorted(WORDS.system_images))})(?![a-z\d])")

IN_AN_IMAGE = (INTERACTIVE, BATCH, SERVING, TRAINING)
"""The order for several words in an image: training is last, because a person may wait for any other."""

_NIM = "nim"
"""The publisher's folder for servers, whatever the model's name: nim/deepmind/alphafold2."""


PROBES = re.compile(r"/(?:v\d+(?:/|$)|health|ready|ping$|generate|predict|invocations|openapi|docs$)")
"""Starts of readiness paths of model servers; a notebook uses a path below /api or /lab."""


def by_name(subject: Subject) -> Hint | None:
    """Return the hint of the first name that has one."""
    return _first(subject.names(), subject)


def by_names(subject: Subject) -> Hint | None:
    """Return the workload's name, if it and the name of a container with devices both say training."""
    whole = _first(subject.called(), subject)
    part = _first(subject.names_of(subject.imaged()), subject) if whole else None
    agree = whole and part and whole.type is part.type is TRAINING
    return whole._replace(clue=f"{whole.clue} and its {part.clue}") if whole and part and agree else None


def _first(names: Iterable[tuple[str, str]], subject: Subject) -> Hint | None:
    return next(_hints_of(names, subject), None)


def _hints_of(names: Iterable[tuple[str, str]], subject: Subject) -> Iterator[Hint]:
    """Yield the hints of names, each with the sort of name as its clue: "label app"."""
    hints = ((name_owner, name_hint(name, ends=subject.ends)) for name_owner, name in names)
    return (hint._replace(clue=name_owner) for name_owner, hint in hints if hint)


def by_one_off_task(subject: Subject) -> Hint | None:
    """Return the hint of a name that says batch, such as benchmark. The word batch is ambiguous and doesn't count."""
    found = by_name(subject)
    return found if found and found.type is WorkloadType.BATCH and found.words != "batch" else None


def by_kind(subject: Subject) -> Hint | None:
    """Return the hint of an unknown kind's name, such as TrainJob or LLMService."""
    return _first([("kind", subject.unknown_kind())], subject)


def by_variable(subject: Subject) -> Hint | None:
    """Return the hint of the first variable whose name has one; if the pod ends, a hint of serving does not count."""
    hints = (variable_hint(name) for name in subject.variables())
    return next((hint for hint in hints if hint and not (subject.ends and hint.type is WorkloadType.SERVING)), None)


def by_what_is_around(subject: Subject) -> Hint | None:
    """Return the hint of the service account or of a variable's first word (VLLM_USE_V1); None if the pod ends."""
    if subject.ends:
        return None
    account = subject.pod.spec.service_account_name[:LONGEST].lower()
    begins = (first for first, more, _ in (name.lower().partition("_") for name in subject.variables()) if more)
    words = (
        *(("service account", word) for word in telling(account, _PROGRAM_NAMES)),
        *(("variable", word) for word in begins if word in _PROGRAM_NAMES),
    )
    return next((Hint(_PROGRAM_NAMES[word], word, clue=name_owner) for name_owner, word in words), None)


@lru_cache(REMEMBERED)
def variable_hint(name: str) -> Hint | None:
    """Return the hint of an environment variable by its whole name; None without one."""
    entries = COMMANDS.variables.items()
    found = (workload_type for workload_type, commands in entries if pattern_of(commands).fullmatch(name.lower()))
    return next((Hint(workload_type, name) for workload_type in found), None)


@lru_cache(REMEMBERED)
def name_hint(name: str, *, ends: bool) -> Hint | None:
    """Return the hint of a name by its last word that has one; None without such a word.

    A workload that `ends` is no server, but may be a server's benchmark. One that does not end and has the name of a
    one-off task is the server that the task is for.
    """
    words = list(telling(name.lower(), _NAMES))
    # A one-off task may be named after the training method of its model.
    if any(word in WORDS.one_off_tasks or WORDS.name_words[word] is WorkloadType.BATCH for word in words):
        words = [word for word in words if word not in WORDS.methods]
    for word in reversed(words):
        if word in WORDS.one_off_tasks:
            return Hint(WorkloadType.BATCH if ends else WorkloadType.SERVING, word)
        workload_type = WORDS.name_words.get(word)
        if workload_type and not (ends and workload_type is WorkloadType.SERVING):
            return Hint(workload_type, word)
    return None


def by_image(subject: Subject) -> Hint | None:
    """Return the first hint, in the order IN_AN_IMAGE, of the images' words. A training image may also serve."""
    packed = _packed(subject, but=SERVING if subject.ends else None)
    hint = min(packed, key=lambda hint: IN_AN_IMAGE.index(hint.type), default=None)
    if hint is None or subject.ends:
        return hint
    if hint.type is BATCH:  # a server of that, if a name says so
        return None if by_answering(subject) else hint
    if hint.type is not TRAINING or by_listening(subject) is None:
        return hint
    named = by_name(subject)  # a server in a training image, unless a name says training
    return hint if named and named.type is TRAINING else None


def by_server(subject: Subject) -> Hint | None:
    """Return a name that says serving, if an image does too. Both are read as if the workload did not end."""
    named = by_name(structs.replace(subject, ends=False))
    if named is None or named.type is not SERVING or named.words in WORDS.one_off_tasks:
        return None
    serves = any(hint.type is SERVING for hint in _packed(subject))
    return named._replace(clue=f"{named.clue} and image") if serves else None


def _packed(subject: Subject, *, but: WorkloadType | None = None) -> Iterator[Hint]:
    for container in subject.imaged():
        overridden = runs_a_script(" ".join((*container.command, *container.args))[:LONGEST])
        for hint in image_hints(container.image[:LONGEST]):
            if hint.type is not but and not (overridden and hint.type is INTERACTIVE):
                yield hint


@lru_cache(REMEMBERED)
def is_system_image(image: str) -> bool:
    """Tell whether an image is a part of the cluster."""
    return _SYSTEM_IMAGE.search(image.lower()) is not None


@lru_cache(REMEMBERED)
def image_hints(image: str) -> tuple[Hint, ...]:
    """Return the hints of the words in an image's path; if it has none, those of the words in its tag."""
    path = image.partition("@")[0].lower()
    host, slash, rest = path.partition("/")
    if slash and ("." in host or ":" in host):
        path = rest
    path, _, tag = path.partition(":")
    known = WORDS.image_words
    words = list(telling(path, known)) or list(telling(tag, known))  # tags list what is built in as well
    if words[:1] == [_NIM]:
        words = [_NIM]
    return tuple(Hint(known[word], word) for word in words)


def by_probe(subject: Subject) -> Hint | None:
    """Return the hint of a path at which model servers report readiness."""
    probes = (each.readiness_probe for each in subject.containers() if each.readiness_probe)
    paths = (path for path in (at(probe.http_get, "path") for probe in probes) if isinstance(path, str))
    return next((Hint(WorkloadType.SERVING, path) for path in paths if PROBES.match(path)), None)


def by_port(subject: Subject) -> Hint | None:
    """Return the hint of a port that programs are known by."""
    ports = (port for port in subject.ports() if port in WORDS.ports)
    return next((Hint(WORDS.ports[port], str(port)) for port in ports), None)


def by_answering(subject: Subject) -> Hint | None:
    """Return a name that says serving, if others may connect: either alone is weaker."""
    names = (("kind", subject.unknown_kind()), *subject.names())
    hints = _hints_of(names, subject)
    named = next((hint for hint in hints if hint.type is not BATCH), None)  # a server has no end
    asked = by_listening(subject) if named and named.type is SERVING else None
    return named._replace(clue=f"{named.clue} and {asked.clue}") if named and asked else None


def by_listening(subject: Subject) -> Hint | None:
    """Return the hint of any port or probe to which others may connect."""
    port = next(subject.asked_at(), None)
    if port is not None:
        return Hint(WorkloadType.SERVING, str(port), clue="port")
    return Hint(WorkloadType.SERVING, "readinessProbe", clue="probe") if subject.answers_probes() else None


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
"""The sources of guesses. A row of the table of kinds says which are used, and in which order."""

_OF_NOBODY: tuple[Source, ...] = ("command", "variable", "kind", *EVERY_SOURCE[2:], "listens", "around")


def classify(pod: Pod, owners: Sequence[Workload], kinds: KindTable) -> Evidence | None:
    """Return the workload type with its evidence. Owners are the nearest first.

    None if nothing tells, or if no proof exists and an image is a part of the cluster.
    """
    # 1. A kind, or the fields of an object of it, proves a type.
    for owner in owners:
        row = owner.row
        if row.type is not None:
            return _unless(Subject.of(pod, owners), row.unless, Evidence(row.type, f"its kind, {owner}"))
        if owner.type is not None:
            return Evidence(owner.type, f"the fields of {owner}")

    # 2. A label that only pods of one type have proves it too.
    member, known = not kinds.gang_labels.isdisjoint(pod.metadata.labels), kinds.telling_labels
    telling = [
        pair
        for labels in (pod.metadata.labels, *(owner.labels for owner in owners))
        for key in known.keys() & labels.keys()
        for pair in known[key]
        if pair[1].value in (None, labels[key])
    ]
    if telling:
        _, label = min(telling)
        proven = Evidence(label.type, f"its label {label.key}")
        return _unless(Subject.of(pod, owners, member=member), label.unless, proven)

    # 3. In a general launcher the program decides, then the launcher's usual use.
    subject = Subject.of(pod, owners, member=member and not owners)
    if any(map(is_system_image, subject.images())):  # an exporter, a device plugin, a driver
        return None
    # The outermost owner's row says which guesses come first, because a JobSet says more than the Jobs that it makes.
    # An owner with a usual use precedes others, and a mere wrapper says nothing.
    outwards = [each for each in reversed(owners) if not each.row.wraps] or list(owners)
    launcher = next((each for each in outwards if each.row.usual), next(iter(outwards), None))
    usual = _usual_use(subject, launcher, kinds)
    sources = launcher.row.before_usual if launcher else _OF_NOBODY
    return _unless(subject, sources, usual) if usual else _guess(subject, sources)


def classify_workload(own: Workload, policy: TierPolicy) -> Evidence | None:
    """Return the type of a workload as it is applied; None without GPUs.

    If only its operator knows the GPUs, because no field of the workload asks for them, only proof counts.
    """
    holding = [member for member in own.members if may_hold_gpus(member.template, policy)]
    if not holding and not own.brings_gpus:
        return None
    owners = (*(each for each in holding[0].makers if not each.place), own) if holding else (own,)
    found = classify(holding[0].template if holding else Pod(), owners, policy.kinds)
    if found is None or holding or own.row.gpu_fields:
        return found
    return found if Grade.Proven in (found.grade, found.otherwise and found.otherwise.grade) else None


def _unless(subject: Subject, sources: Sequence[Source], stands: Evidence) -> Evidence:
    """Return the evidence that `stands`, or a guess of another type or a better grade, which remembers that evidence.

    A guess from what runs confirms evidence of the same type.
    """
    found = _guess(subject, sources)
    if found is None:
        return stands
    if found.type is stands.type and found.grade <= stands.grade:
        return structs.replace(stands, confirmed=found.grade is Grade.Shown)
    return structs.replace(found, otherwise=stands)


def _guess(subject: Subject, sources: Sequence[Source]) -> Evidence | None:
    """Return the first guess, in the order of the sources, that shows what runs; otherwise the first that hints."""
    for source in sorted(sources, key=lambda source: source not in SHOWN):
        hint = SOURCES[source](subject)
        if hint is not None:
            grade = Grade.Shown if source in SHOWN else Grade.Hinted
            return Evidence(hint.type, f'its {hint.clue or source} ("{hint.words}")', grade, source)
    return None


def _usual_use(subject: Subject, owner: Workload | None, kinds: KindTable) -> Evidence | None:
    """Return the evidence of usual use: of shards, of the launcher's kind or label, or of a bare pod that ends."""
    # 1. Indexed shards are batch, whatever their kind's usual use, because they don't wait for one another as a gang
    #    does.
    shards = next((each for each in subject.owners if each.shards), None)
    if shards is not None:
        usual_use = f"the usual use of Indexed completions above its parallelism, {shards}"
        return Evidence(WorkloadType.BATCH, usual_use, Grade.Usual)
    # 2. The kind of the owner, or a label if the owner is not visible.
    if owner is not None:
        text = f"the usual use of its kind, {owner}"
        return Evidence(owner.row.usual, text, Grade.Usual) if owner.row.usual else None
    for key in subject.pod.metadata.labels:
        if key in kinds.usual_labels:
            return Evidence(kinds.usual_labels[key], f"the usual use of what writes its label {key}", Grade.Usual)
    # 3. A bare pod that ends is usually batch, like a Job, if its command is known; otherwise that is a hint.
    if not subject.ends:
        return None
    by_hand = subject.pod.metadata.controller is None and any(subject.commands())
    text = f'its restartPolicy ("{subject.pod.spec.restart_policy}")'
    return Evidence(WorkloadType.BATCH, text, Grade.Usual if by_hand else Grade.Hinted)


def make_expressions() -> None:
    """Compile the expressions of commands and variables now, because the first review would wait for them."""
    for made in (False, True):
        command_hints("", ends=False, made=made)
    variable_hint("")
