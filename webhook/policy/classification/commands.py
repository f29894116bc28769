"""Guesses from commands: what runs in the containers, what owners say they run, and the name of a script.

The words that hint at a type are in commands.yaml and words.yaml. They are weak evidence, called a guess.
"""

import re
from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from itertools import groupby
from operator import itemgetter
from typing import Any

import msgspec

from webhook.objects.data_files import data_file
from webhook.policy.classification.evidence import LONGEST, REMEMBERED, Hint, Subject, Weight, telling
from webhook.policy.workloads.kind_table import WorkloadType

_ANY_PROGRAM = "* "


class Commands(msgspec.Struct, frozen=True, eq=False, forbid_unknown_fields=True):
    """Phrases separated by commas, in groups, and regular expressions for what no phrase can say.

    An expression may span several lines of the file. Each entry is equal only to itself, so that its hash is its
    identity.
    """

    phrases: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()


class CommandTables(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The file commands.yaml; the comments in it explain each field."""

    overrides: Mapping[WorkloadType, Commands]
    programs: Mapping[WorkloadType, Commands]
    launchers: Mapping[WorkloadType, Commands]
    waiting: Commands
    dozing: Commands
    checks: Mapping[WorkloadType, Commands]
    variables: Mapping[WorkloadType, Commands]
    noise: str
    script: str
    plain: str
    waits: str
    wrapped: str


class WordTables(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """The file words.yaml; the comments in it explain each field. A word has the type that it hints at."""

    script_words: Mapping[str, WorkloadType]
    exercises: frozenset[str]
    name_words: Mapping[str, WorkloadType]
    system_images: frozenset[str]
    methods: frozenset[str]
    one_off_verbs: frozenset[str]
    one_off_tasks: frozenset[str]
    image_words: Mapping[str, WorkloadType]
    ports: Mapping[int, WorkloadType]


def _words(found: Any) -> Any:
    """Return the words of a field: those of its groups, which blanks separate, or of its types."""
    if isinstance(found, list):
        return " ".join(found).split()
    return {word: workload_type for workload_type, groups in found.items() for word in _words(groups)}


COMMANDS = msgspec.convert(data_file(__name__, "commands.yaml"), CommandTables)
_WRITTEN_WORDS = data_file(__name__, "words.yaml").items()
WORDS = msgspec.convert({name: each if name == "ports" else _words(each) for name, each in _WRITTEN_WORDS}, WordTables)


@cache
def pattern_of(commands: Commands) -> re.Pattern[str]:
    """Return one expression for all phrases and patterns of an entry; a phrase begins and ends at word boundaries.

    It is compiled when first needed: all of them take a quarter of a command's start-up time.
    """
    phrases = [phrase.strip() for group in commands.phrases for phrase in group.split(",")]
    of_any = [_expression(each.removeprefix(_ANY_PROGRAM)) for each in phrases if each.startswith(_ANY_PROGRAM)]
    of_one = [_expression(each) for each in phrases if not each.startswith(_ANY_PROGRAM)]
    every = [rf"\w[\w.-]* +(?:{'|'.join(of_any)})"] if of_any else []  # a program's name is read once for all
    for letter, group in groupby(sorted(of_one, key=itemgetter(0)), key=itemgetter(0)):  # compared with that first
        every.append(letter + "(?:" + "|".join(each[1:] for each in group) + ")")
    every += [each.replace("\n", "") for each in commands.patterns]
    return re.compile(r"(?<![\w.-])(?:" + "|".join(every) + ")", re.DOTALL)


def _expression(phrase: str) -> str:
    words = re.escape(phrase).replace(r"\ ", " +").replace(r"\*", r"\S*")
    return words if phrase.endswith("*") else words + r"(?![\w.-])"


TRAINING, SERVING, BATCH, INTERACTIVE = WorkloadType

_FOLDERS = re.compile(r"(?<![\w/.+~-])(?!/dev/null)[\w.+~-]*/(?:[\w.+-]+/)*(?=[\w.-])")
_BARE_SHELL = re.compile(r"\s*(?:\S*sh(?: +-\w+)* +-\w*c)?\s*")
_END_OF_COMMAND = re.compile(r"(\n|;|(?<![&>|<\\])&(?=[\s)]|\Z))")
_KILLS = re.compile(r"(?:\A|[\n;&|])[ \t]*kill\b")

_PYTHON_SCRIPT = re.compile(r"(?<![\w.-])python[\d.]*(?: +-[a-z]\b)* +(?!-)(?:\S{0,200}/)?([\w-]{1,100})\.py\b")
"""Python with the user's own script."""

_LISTED = re.compile(r"""['"]\s*,\s*['"]""")
_GENERIC = re.compile(r"([\w-]{1,80})/((?:main|run|start|launch|entrypoint)\.(?:py|sh))\b")

_WRITTEN = (COMMANDS.noise, COMMANDS.script, COMMANDS.plain, COMMANDS.waits, COMMANDS.wrapped)
_NOISE, _SCRIPT, _PLAIN, _WAITS, _WRAPPED = (re.compile(each.replace("\n", "")) for each in _WRITTEN)
_SCRIPTS = WORDS.script_words.keys() | WORDS.one_off_tasks
_OF_ANYTHING = frozenset(["app", "main", "server"])
"""Names of scripts that may do anything."""

AT_ONCE = (INTERACTIVE, TRAINING, SERVING, BATCH)
"""The order for things that run at once: a person's session, then what would be lost, then what others wait for."""

AT_ONCE_AND_ENDS = (INTERACTIVE, TRAINING, BATCH, SERVING)
"""The order in a workload that ends: a server beside other work only serves that work."""


def by_command(subject: Subject) -> Hint | None:
    """Return the hint with the largest weight of all commands. A pod that ends and runs only echo is batch.

    A command that only waits gives no hint in a gang whose owners are not visible, or if a command without a hint does
    something.
    """
    texts = list(subject.commands())
    made = subject.ends and bool(subject.owners)  # by a Job, not by a person who wrote restartPolicy: Never
    hints_of = {text: command_hints(text, ends=subject.ends, made=made) for text in texts}
    order = AT_ONCE_AND_ENDS if subject.ends else AT_ONCE
    hints = (hint for found in hints_of.values() for hint in found)
    hint = min(hints, key=lambda hint: (-hint.weight, order.index(hint.type)), default=None)
    waits = hint is not None and hint.weight is Weight.WAITS
    if hint is not None and not waits:
        return hint
    working = [text for text, found in hints_of.items() if not found]  # not an MPI worker's sshd
    works = any(map(does_something, working))
    if subject.ends and working and all(map(is_plain, working)) and (works or not waits):
        return Hint(BATCH, working[0].split(" ")[0])  # echo hello, in a Job called training-demo
    return None if waits and (subject.member or works) else hint


@lru_cache(REMEMBERED)
def command_hints(text: str, *, ends: bool, made: bool = False) -> tuple[Hint, ...]:
    """Return the hints of a command or script without its preparations. `made`: by a kind whose pods end."""
    whole = text[:LONGEST].lower()
    front = _foreground(whole)
    if front != whole and does_something(front):
        found = _hints(front, ends=ends, made=made)
        if found or ends:
            return found
    return _hints(whole, ends=ends, made=made)


def _hints(text: str, *, ends: bool, made: bool) -> tuple[Hint, ...]:
    text = _NOISE.sub(" ", text)
    text = _LISTED.sub(" ", text)  # ["vllm", "serve"] within a program
    text = _GENERIC.sub(after_its_folder, text)
    text = _FOLDERS.sub("", text)  # /workspace/megatron-lm/tools/x.py is x.py: a folder is no program
    overrides = ((of, pattern_of(commands).search(text)) for of, commands in COMMANDS.overrides.items())
    found = (
        tuple(Hint(of, match.group(0).rpartition(" ")[2]) for of, match in overrides if match)
        or (*_first_of(COMMANDS.programs, text), *_scripts(text, ends=ends))
        or tuple(_wrapped(text, ends=ends))
        or tuple(_first_of(COMMANDS.launchers, text, Weight.LAUNCHER))
    )
    if found:
        return found
    waits = pattern_of(COMMANDS.waiting if made else COMMANDS.dozing).search(text)
    if waits and not _PYTHON_SCRIPT.search(text, 0, waits.start()):
        return (Hint(INTERACTIVE, waits.group(0), Weight.WAITS),)
    # A look at the GPUs before a script tells nothing about a workload that doesn't end.
    return tuple(_first_of(COMMANDS.checks, text, Weight.LOOKS)) if ends or not _SCRIPT.search(text) else ()


def _foreground(script: str) -> str:
    """Return the script without its background jobs: they count only if the shell then waits or sleeps.

    A server that `&` starts for the pipeline after it ends with the pipeline.
    """
    if "&" not in script:
        return script
    parts = _END_OF_COMMAND.split(script.replace("\\\n", " "))
    front = "".join(command + end for command, end in zip(parts[::2], [*parts[1::2], ""], strict=True) if end != "&")
    alive = front[: killed.start()] if (killed := _KILLS.search(front)) else front
    return script if _WAITS.search(alive) else front


def does_something(text: str) -> bool:
    """Tell whether a command does more than prepare, without its shell."""
    return _BARE_SHELL.fullmatch(_NOISE.sub(" ", text[:LONGEST].lower())) is None


def is_plain(text: str) -> bool:
    """Tell whether the command shows everything it does: nothing, a pause, or a program that does not train."""
    return not does_something(text) or _PLAIN.fullmatch(text[:LONGEST].lower()) is not None


@lru_cache(REMEMBERED)
def runs_a_script(command: str) -> bool:
    """Tell whether a command runs a Python script of its user, whatever the image is for. `main.py` doesn't count."""
    found = _PYTHON_SCRIPT.finditer(_NOISE.sub(" ", command[:LONGEST].lower()))
    return any(script.group(1) not in _OF_ANYTHING for script in found)


def _scripts(text: str, *, ends: bool) -> Iterator[Hint]:
    for match in _SCRIPT.finditer(text):
        name = match.group("module") or match.group("file")
        if name not in _OF_ANYTHING and (workload_type := script_type(name, ends=ends)):
            yield Hint(workload_type, match.group(0).removeprefix("-m").strip())


def _wrapped(text: str, *, ends: bool) -> Iterator[Hint]:
    """Yield the hint of the program that a wrapper starts (runcmd train_unet), if it says training or batch."""
    for match in _WRAPPED.finditer(text):
        workload_type = script_type(match.group("program"), ends=ends)
        if workload_type in (TRAINING, BATCH):
            yield Hint(workload_type, match.group("program"))


def _first_of(table: Mapping[WorkloadType, Commands], text: str, weight: Weight = Weight.WORK) -> Iterator[Hint]:
    for workload_type, commands in table.items():
        if match := pattern_of(commands).search(text):
            yield Hint(workload_type, match.group(0).strip(" -"), weight)


def script_type(name: str, *, ends: bool) -> WorkloadType | None:
    """Return the type that a script's name hints at, mostly by its first word that has one; None without such a word.

    A server of training (serve_trainer.py) is still a server. A one-off task is batch if the pod `ends`, else serving.
    """
    package, _, module = name.rpartition(".")
    words = list(telling(module, _SCRIPTS))
    if not words:  # A package may say what its modules do: `train.main` trains, but `app.consumer` is no app.
        of_package = telling(package, _SCRIPTS)
        words = [word for word in of_package if WORDS.script_words.get(word) is not WorkloadType.SERVING]
    words = [word for word in words if word not in ("test", "tests")] or words  # tests of something count as that
    if not words:
        return WorkloadType.TRAINING if any(True for _ in telling(name, WORDS.exercises)) else None
    if "and-train" in words or "and-finetune" in words:
        return WorkloadType.TRAINING  # prepare_and_train.py
    types = [WORDS.script_words[word] for word in words if word in WORDS.script_words]
    trains = types[:1] == [WorkloadType.TRAINING]
    if not types or (trains and words[0] in WORDS.one_off_verbs):
        return WorkloadType.BATCH if ends else WorkloadType.SERVING
    if WorkloadType.SERVING in types and (trains or words[0] in WORDS.one_off_tasks):
        return WorkloadType.SERVING
    return types[0]


def after_its_folder(script: re.Match[str]) -> str:
    """Return `mnist.main.py` for `mnist/main.py`, whose folder says training; `data/main.py` stays as it is."""
    folder, name = script.groups()
    trains = any(WORDS.script_words.get(word) is WorkloadType.TRAINING for word in telling(folder, WORDS.script_words))
    return f"{folder}.{name}" if trains or any(True for _ in telling(folder, WORDS.exercises)) else script.group(0)
