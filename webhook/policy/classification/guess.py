"""Guesses what a workload does from what it runs, is packed in and is called; always called a guess, never proof."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from webhook.objects.pods import Pod
from webhook.policy.classification import clues
from webhook.policy.classification.commands import command_hints, does_something
from webhook.policy.classification.evidence import Evidence, Trust
from webhook.policy.classification.hints import Hint, Weight
from webhook.policy.classification.names import image_hints, is_machinery, name_hint, variable_hint
from webhook.policy.classification.vocabulary.known_ports import PORTS, PROBES
from webhook.policy.classification.vocabulary.name_words import ERRANDS
from webhook.policy.values.facts import Workload
from webhook.policy.workloads.kinds.row import Source
from webhook.policy.workloads.workload_types import WorkloadType

_TRAINING, _SERVING, _BATCH, _INTERACTIVE = WorkloadType

AT_ONCE = (_INTERACTIVE, _TRAINING, _SERVING, _BATCH)
"""Of several things that a workload runs at once: a person's session, then what would be lost, then who waits."""

AT_ONCE_AND_ENDS = (_INTERACTIVE, _TRAINING, _BATCH, _SERVING)
"""Where it ends, a server beside other work is that work's."""

IN_AN_IMAGE = (_INTERACTIVE, _BATCH, _SERVING, _TRAINING)
"""Of several words of an image: never training where it may be something that a person waits for."""


@dataclass(frozen=True, slots=True)
class Case:
    """What a guess is made of. `ends`: it is made to end, so that it is no server by its name or image alone."""

    pod: Pod
    owners: Sequence[Workload]
    ends: bool
    member: bool = False

    @property
    def made(self) -> bool:
        """Whether something made it to end: a Job, not a person who wrote restartPolicy: Never."""
        return self.ends and bool(self.owners)


def of_the_cluster(pod: Pod, owners: Sequence[Workload]) -> bool:
    """Whether its image is that of a part of the cluster: an exporter, a device plugin, a driver."""
    return any(is_machinery(image) for image in clues.images(pod, owners))


def guess(pod: Pod, owners: Sequence[Workload], sources: Sequence[Source], *, member: bool = False) -> Evidence | None:
    """What the first source says that says anything. A `member` of a gang that is not seen waits for the others."""
    case = Case(pod, owners, clues.runs_to_an_end(pod, owners), member)
    for source in sources:
        hint = _BY[source](case)
        if hint:
            return Evidence(hint.type, f'its {_CALLED.get(source, source)} ("{hint.words}")', Trust.GUESS)
    return None


def _by_command(case: Case) -> Hint | None:
    texts = list(clues.commands(case.pod, case.owners))
    if case.ends and texts and not any(does_something(text) for text in texts):
        return Hint(_BATCH, texts[0].split(" ")[0])  # echo hello, in a Job called training-demo
    told = {text: command_hints(text, ends=case.ends, made=case.made) for text in texts}
    hints = [hint for found in told.values() for hint in found]
    heaviest = max((hint.weight for hint in hints), default=None)
    if heaviest is Weight.WAITS and (case.member or _another_works(told)):
        return None
    order = AT_ONCE_AND_ENDS if case.ends else AT_ONCE
    return _first((hint for hint in hints if hint.weight is heaviest), order)


def _another_works(told: Mapping[str, Sequence[Hint]]) -> bool:
    """Whether a command does what nobody knows: then the one that waits does so for that, not for a person."""
    return any(does_something(text) for text, hints in told.items() if not hints)


def _by_variable(case: Case) -> Hint | None:
    told = (variable_hint(name) for name in clues.variables(case.pod, case.owners))
    return next((hint for hint in told if hint and not (case.ends and hint.type is _SERVING)), None)


def _by_errand(case: Case) -> Hint | None:
    """A name that ends in what is no training: an evaluation, a benchmark, a test. A batch may be of anything."""
    found = _by_name(case)
    return found if found and found.type is _BATCH and found.words != "batch" else None


def _by_image(case: Case) -> Hint | None:
    hint = _first(_packed(case, but=_SERVING if case.ends else None), IN_AN_IMAGE)
    trained = hint is not None and hint.type is _TRAINING  # the last of the order: no other word tells
    return None if trained and not case.ends and _answers(case) else hint


def _packed(case: Case, *, but: WorkloadType | None = None) -> Iterator[Hint]:
    for image in clues.images(case.pod, case.owners):
        yield from (hint for hint in image_hints(image) if hint.type is not but)


def _answers(case: Case) -> bool:
    """Whether somebody asks it something, and no name says that it trains: an image that trained also serves."""
    named = _by_name(case)
    return _by_listening(case) is not None and (named is None or named.type is not _TRAINING)


def _by_name(case: Case) -> Hint | None:
    told = (name_hint(name, ends=case.ends) for name in clues.names(case.pod, case.owners))
    return next(filter(None, told), None)


def _by_kind(case: Case) -> Hint | None:
    """Its author called it TrainJob or LLMService, which tells more than what somebody packed in it."""
    kind = clues.unknown_kind(case.pod, case.owners)
    return name_hint(kind, ends=case.ends) if kind else None


def _by_probe(case: Case) -> Hint | None:
    paths = (path for path in clues.probed(case.pod, case.owners) if PROBES.match(path))
    return next((Hint(_SERVING, path) for path in paths), None)


def _by_port(case: Case) -> Hint | None:
    ports = (port for port in clues.ports(case.pod, case.owners) if port in PORTS)
    return next((Hint(PORTS[port], str(port)) for port in ports), None)


def _by_listening(case: Case) -> Hint | None:
    listens = next((Hint(_SERVING, str(port)) for port in clues.asked_at(case.pod, case.owners)), None)
    return listens or (Hint(_SERVING, "readinessProbe") if clues.answers_probes(case.pod, case.owners) else None)


def _by_server(case: Case) -> Hint | None:
    """Where a name says so and an image too, as they would of what never ends."""
    named = _by_name(replace(case, ends=False))
    if named is None or named.type is not _SERVING or named.words in ERRANDS:
        return None
    return named if any(hint.type is _SERVING for hint in _packed(case)) else None


def _first(hints: Iterable[Hint], order: Sequence[WorkloadType]) -> Hint | None:
    return min(hints, key=lambda hint: order.index(hint.type), default=None)


_CALLED: dict[Source, str] = {"listens": "port", "errand": "name", "server": "name and image"}

_BY: dict[Source, Callable[[Case], Hint | None]] = {
    "command": _by_command,
    "variable": _by_variable,
    "kind": _by_kind,
    "errand": _by_errand,
    "image": _by_image,
    "name": _by_name,
    "probe": _by_probe,
    "port": _by_port,
    "listens": _by_listening,
    "server": _by_server,
}
