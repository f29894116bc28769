"""Guesses from what surrounds a command: names of pod, owners and variables, words of images, ports and probes."""

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

from msgspec import structs

from webhook.policy.classification.commands import COMMANDS, WORDS, pattern_of, runs_a_script
from webhook.policy.classification.evidence import CONTAINER_NAME, LONGEST, REMEMBERED, Hint, Subject, telling
from webhook.policy.workloads.kind_table import WorkloadType

TRAINING, SERVING, BATCH, INTERACTIVE = WorkloadType

_NAMES = WORDS.name_words.keys() | WORDS.one_off_tasks
_PROGRAM_NAMES = {
    word: workload_type
    for word, workload_type in WORDS.name_words.items()
    if workload_type is not BATCH and WORDS.image_words.get(word) is workload_type and word not in WORDS.script_words
}
"""What names and images say alike: right in 95 % of the labelled manifests with such a variable. BATCH_SIZE is none."""
_SYSTEM_IMAGE = re.compile(rf"(?<![a-z\d])(?:{'|'.join(sorted(WORDS.system_images))})(?![a-z\d])")

IN_AN_IMAGE = (INTERACTIVE, BATCH, SERVING, TRAINING)
"""Of several words of an image: training last, since a person may wait for what else it may be."""

_NIM = "nim"
"""Their publisher's folder for servers, whatever the model is called after: nim/deepmind/alphafold2."""


PROBES = re.compile(r"/(?:v\d+(?:/|$)|health|ready|ping$|generate|predict|invocations|openapi|docs$)")
"""How paths begin at which servers of models say that they are ready; a notebook says it below /api or /lab."""


def by_name(subject: Subject) -> Hint | None:
    """The first name that tells."""
    return _first(subject.names(), subject)


def by_names(subject: Subject) -> Hint | None:
    """The name of the whole, if that and the name of a container with devices both say that it trains."""
    whole = _first(subject.called(), subject)
    names = ((CONTAINER_NAME, container.name[:LONGEST]) for container in subject.imaged())
    part = _first(names, subject) if whole else None
    agree = whole and part and whole.type is part.type is TRAINING
    return whole._replace(clue=f"{whole.clue} and its {CONTAINER_NAME}") if whole and agree else None


def _first(names: Iterable[tuple[str, str]], subject: Subject) -> Hint | None:
    return next(_hints_of(names, subject), None)


def _hints_of(names: Iterable[tuple[str, str]], subject: Subject) -> Iterator[Hint]:
    """The hints of names, each with whose name it is."""
    for whose, name in names:
        hint = name_hint(name, ends=subject.ends)
        if hint:
            yield hint._replace(clue=whose)


def by_one_off_task(subject: Subject) -> Hint | None:
    """A name that ends in an evaluation, a benchmark, a test. The word batch doesn't count: a batch may be anything."""
    found = by_name(subject)
    return found if found and found.type is WorkloadType.BATCH and found.words != "batch" else None


def by_kind(subject: Subject) -> Hint | None:
    """The name of an unknown kind, such as TrainJob or LLMService."""
    return _first([("kind", subject.unknown_kind())], subject)


def by_variable(subject: Subject) -> Hint | None:
    """The first variable whose name tells."""
    told = (variable_hint(name) for name in subject.variables())
    return next((hint for hint in told if hint and not (subject.ends and hint.type is WorkloadType.SERVING)), None)


def by_what_is_around(subject: Subject) -> Hint | None:
    """Tell by what the service account, or the first word of a variable, is called after: VLLM_USE_V1."""
    if subject.ends:
        return None
    account = subject.pod.spec.service_account_name[:LONGEST].lower()
    begins = (first for first, more, _ in (name.lower().partition("_") for name in subject.variables()) if more)
    words = (
        *(("service account", word) for word in telling(account, _PROGRAM_NAMES)),
        *(("variable", word) for word in begins if word in _PROGRAM_NAMES),
    )
    return next((Hint(_PROGRAM_NAMES[word], word, clue=whose) for whose, word in words), None)


@lru_cache(REMEMBERED)
def variable_hint(name: str) -> Hint | None:
    """Tell by the whole name of an environment variable."""
    entries = COMMANDS.variables.items()
    found = (workload_type for workload_type, commands in entries if pattern_of(commands).fullmatch(name.lower()))
    return next((Hint(workload_type, name) for workload_type in found), None)


@lru_cache(REMEMBERED)
def name_hint(name: str, *, ends: bool) -> Hint | None:
    """Tell by the last word that tells. What ends is no server, but maybe a server's benchmark."""
    for word in reversed(_words(name)):
        if word in WORDS.one_off_tasks:
            return Hint(WorkloadType.BATCH if ends else WorkloadType.SERVING, word)
        workload_type = WORDS.name_words.get(word)
        if workload_type and not (ends and workload_type is WorkloadType.SERVING):
            return Hint(workload_type, word)
    return None


def _words(name: str) -> list[str]:
    """The words that tell; beside a one-off task, the method by which something was trained tells nothing."""
    words = list(telling(name.lower(), _NAMES))
    if any(word in WORDS.one_off_tasks or WORDS.name_words[word] is WorkloadType.BATCH for word in words):
        return [word for word in words if word not in WORDS.methods]
    return words


def by_image(subject: Subject) -> Hint | None:
    """The first type, in the order above, among the words of the images. An image made for training may also serve."""
    packed = _packed(subject, but=SERVING if subject.ends else None)
    hint = min(packed, key=lambda hint: IN_AN_IMAGE.index(hint.type), default=None)
    if hint is None or subject.ends:
        return hint
    if hint.type is BATCH:  # a server of that, if a name says so
        return None if by_answering(subject) else hint
    return None if hint.type is TRAINING and _answers(subject) else hint


def by_server(subject: Subject) -> Hint | None:
    """Tell where both a name and an image say that it serves, read as for a workload that doesn't end."""
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


def _answers(subject: Subject) -> bool:
    """Tells whether it listens, and no name says that it trains."""
    named = by_name(subject)
    return by_listening(subject) is not None and (named is None or named.type is not TRAINING)


@lru_cache(REMEMBERED)
def is_system_image(image: str) -> bool:
    """Tells whether it is a part of the cluster."""
    return _SYSTEM_IMAGE.search(image.lower()) is not None


@lru_cache(REMEMBERED)
def image_hints(image: str) -> tuple[Hint, ...]:
    """Tell by words of the image's path and tag."""
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
    """A path at which servers of models are asked whether they are ready."""
    paths = (path for path in subject.probed() if PROBES.match(path))
    return next((Hint(WorkloadType.SERVING, path) for path in paths), None)


def by_port(subject: Subject) -> Hint | None:
    """A port that programs are known by."""
    ports = (port for port in subject.ports() if port in WORDS.ports)
    return next((Hint(WORDS.ports[port], str(port)) for port in ports), None)


def by_answering(subject: Subject) -> Hint | None:
    """A name that says that it serves, of what others may ask: either alone says less."""
    names = (("kind", subject.unknown_kind()), *subject.names())
    hints = _hints_of(names, subject)
    named = next((hint for hint in hints if hint.type is not BATCH), None)  # what is asked has no end
    asked = by_listening(subject) if named and named.type is SERVING else None
    return named._replace(clue=f"{named.clue} and {asked.clue}") if named and asked else None


def by_listening(subject: Subject) -> Hint | None:
    """Any port or probe at which others may ask."""
    port = next(subject.asked_at(), None)
    if port is not None:
        return Hint(WorkloadType.SERVING, str(port), clue="port")
    return Hint(WorkloadType.SERVING, "readinessProbe", clue="probe") if subject.answers_probes() else None
