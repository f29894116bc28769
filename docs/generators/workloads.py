"""Makes docs/workloads.md of the table of kinds and of the guesses; decides nothing about them."""

from collections.abc import Iterator, Mapping

from generators.tables import code, page, table
from webhook.policy.classification.vocabulary.command_phrases import (
    CHECKS,
    DOZING,
    LAUNCHERS,
    LONGEST,
    OVERRIDES,
    VARIABLES,
    Commands,
)
from webhook.policy.classification.vocabulary.image_words import IMAGE_WORDS
from webhook.policy.classification.vocabulary.known_ports import PORTS
from webhook.policy.classification.vocabulary.name_words import ERRANDS, EXERCISES, MACHINERY, NAME_WORDS, SCRIPT_WORDS
from webhook.policy.classification.vocabulary.program_phrases import PROGRAMS
from webhook.policy.workloads.group_counts import once
from webhook.policy.workloads.kinds import BUILT_IN
from webhook.policy.workloads.kinds.labels import LAUNCHER_LABELS, WELL_KNOWN_LABELS
from webhook.policy.workloads.kinds.row import KindRow, Templates
from webhook.policy.workloads.workload_types import WorkloadType

_WHY = """\
Why: the type of a workload decides its tier where nobody named one, so it must be plain what makes us say so. A kind
that *is* something (a PyTorchJob trains) proves it. A general launcher (a Job, a JobSet) is only *usually* something:
that chooses a tier and binds nobody. Names and images are guesses, and are called so."""

_ORDER = """\
The order of trust: the kind or the fields of any owner that prove it, a label that only pods of one type bear, then
what the pod runs, is packed in and is called (guesses), and the usual use of the outermost owner where no guess says
otherwise. [What each may do](decisions/evidence.md)."""

_KINDS = """\
## Kinds

Pods of any other kind get a tier too; only their type has to come from a label or a guess, to which the owner's kind
and API group count as names (TrainJob, inference.example.com). The object itself is not checked when it is applied.
`gpu-tiers review -f` shows what comes of it all the same, as far as its shape tells: pod templates, containers, whole
objects in it. [A row in the policy](policy.md#kinds-of-your-own) makes it known."""

_TEMPLATES = """\
## Pods of a workload

Where the webhook finds a workload's pod templates, and how many pods each makes: this is what a workload is checked
for when it is applied."""

_LABELS = """\
## Labels without a kind

Charts and spawners write these on the pods that they make."""

_GUESSES = f"""\
## Guesses

Of what a workload runs, a program, a subcommand, an option or a script's name tells more than a launcher (torchrun),
and a launcher more than a shell that waits. Where a workload does several things at once, a person's session counts
before training, and that before serving and batch; of what ends, batch before serving.
In a command `*` stands for any text without a blank, and a first `*` for any program.
A guess may lower a workload below the tier that it would have without the guess and never raises it above, unless
the policy says `guessesMayRaise`.
Of each text the first {LONGEST} characters are searched."""


def workloads() -> str:
    """The page, whole."""
    return page(
        "Workloads",
        "`webhook/policy/kinds/` and `webhook/policy/guesses/`",
        _WHY,
        _ORDER,
        _KINDS,
        table(("kind", "API group", "type", "labels on its pods"), (_kind(row) for row in BUILT_IN.rows)),
        _TEMPLATES,
        table(("kind", "pod template", "pods"), (_place(row, each) for row in BUILT_IN.rows for each in row.templates)),
        _LABELS,
        table(("label", "type"), _labels()),
        _GUESSES,
        table(("looks at", "type", "finds"), _guesses()),
    )


def _kind(row: KindRow) -> tuple[str, str, str, str]:
    group = f"[{row.group or 'core'}]({row.source})"
    labels = (code(f"{key}={value}" if value else key) for key, value in row.labels.items())
    return row.kind, group, _type(row), ", ".join(labels)


def _type(row: KindRow) -> str:
    if row.type:
        unless = f", unless its {', '.join(row.unless)} says another" if row.unless else ""
        return f"{row.type}, proven{unless}"
    told = [f"{kind} where {code(field)} is filled" for field, kind in row.fields]
    if row.usual:
        first = f"; first its {', '.join(row.before_usual)}" if row.before_usual else ""
        told.append(f"{row.usual}, usually{first}")
    return "; ".join(told) or "whatever its pods are"


def _place(row: KindRow, templates: Templates) -> tuple[str, str, str]:
    place = ".".join(filter(None, (templates.holder, templates.path)))
    told = [_says(templates.count)] + [_says(templates.times) for _ in range(templates.times is not once)]
    return row.kind, code(place) or "the object itself", "; times: ".join(told)


def _says(count: object) -> str:
    return (count.__doc__ or "").strip().rstrip(".")


def _labels() -> Iterator[tuple[str, str]]:
    for key, value, kind, source in WELL_KNOWN_LABELS:
        yield f"[{code(f'{key}={value}' if value else key)}]({source})", kind
    for key, kind, source in LAUNCHER_LABELS:
        yield f"[{code(key)}]({source})", f"{kind}, usually"


def _guesses() -> Iterator[tuple[str, str, str]]:
    """By source, in the order in which they count."""
    yield "an image: a part of the cluster", "none of them", ", ".join(sorted(MACHINERY))
    for title, table_ in (
        ("command: an option that overrides", OVERRIDES),
        ("command: a program, subcommand or option", PROGRAMS),
        ("command: a launcher", LAUNCHERS),
    ):
        for kind, commands in table_.items():
            yield title, kind, _found_by(commands)
    yield "command: waits, where nothing else is done", WorkloadType.INTERACTIVE, _found_by(DOZING)
    for kind, commands in CHECKS.items():
        yield "command: a look at the GPUs, where nothing else tells", kind, _found_by(commands)
    for kind, commands in VARIABLES.items():
        yield "a variable's name", kind, commands.phrases
    yield "a script's name, where no other word of it tells", WorkloadType.TRAINING, ", ".join(sorted(EXERCISES))
    for title, words in (("a script's name, first word", SCRIPT_WORDS), ("an image's words", IMAGE_WORDS)):
        yield from _by_type(title, words)
    yield from _by_type("a name, last word", NAME_WORDS)
    errands = f"{WorkloadType.SERVING}; {WorkloadType.BATCH} of what ends"
    yield "a script's name, a name", errands, ", ".join(sorted(ERRANDS))
    yield from _by_type("a port", {str(port): kind for port, kind in PORTS.items()})


def _found_by(commands: Commands) -> str:
    """The phrases as they stand, and what no phrase can say."""
    patterns = ", ".join(map(code, commands.patterns))
    return "; by pattern ".join(filter(None, (commands.phrases, patterns)))


def _by_type(title: str, words: Mapping[str, WorkloadType]) -> Iterator[tuple[str, str, str]]:
    for kind in dict.fromkeys(words.values()):
        yield title, kind, ", ".join(word for word, each in words.items() if each is kind)
