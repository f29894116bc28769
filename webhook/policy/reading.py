"""What one text hints at: a command, an image, a name, a port; never what the whole workload is.

Pure functions of one text, and pods of a workload have the same texts: what was read once is remembered.
"""

import re
from collections.abc import Container, Iterator, Mapping
from enum import IntEnum
from functools import lru_cache
from typing import NamedTuple

from webhook.policy.guesses.commands import LONGEST
from webhook.policy.guesses.images import IMAGE_WORDS
from webhook.policy.guesses.patterns import (
    CHECK_PATTERNS,
    DOZING_PATTERN,
    LAUNCHER_PATTERNS,
    MACHINERY_PATTERN,
    NOISE_PATTERN,
    OVERRIDE_PATTERNS,
    PROGRAM_PATTERNS,
    SCRIPT_PATTERN,
    VARIABLE_PATTERNS,
    WAITING_PATTERN,
)
from webhook.policy.guesses.words import ERRAND_VERBS, ERRANDS, EXERCISES, METHODS, NAME_WORDS, SCRIPT_WORDS
from webhook.policy.words import WorkloadType

REMEMBERED = 4096
"""Texts of each sort that are remembered."""

_BETWEEN = re.compile(r"[^a-z0-9]+")
_FOLDERS = re.compile(r"(?<![\w/.+~-])(?!/dev/null)[\w.+~-]*/(?:[\w.+-]+/)*(?=[\w.-])")
_BARE_SHELL = re.compile(r"\s*(?:\S*sh(?: +-\w+)* +-\w*c)?\s*")
_LISTED = re.compile(r"""['"]\s*,\s*['"]""")
_GENERIC = re.compile(r"([\w-]{1,80})/((?:main|run|start|launch|entrypoint)\.(?:py|sh))\b")
_SCRIPTS = SCRIPT_WORDS.keys() | ERRANDS
_LAST_STEPS = frozenset(["and-train", "and-finetune"])
_NIM = "nim"
"""Their publisher's folder for servers, whatever the model is called after: nim/deepmind/alphafold2."""
_TESTS = frozenset(["test", "tests"])
_NAMES = NAME_WORDS.keys() | ERRANDS


class Weight(IntEnum):
    """How much a hint in a command says: the larger decides."""

    LOOKS = 0
    WAITS = 1
    LAUNCHER = 2
    WORK = 3


class Hint(NamedTuple):
    """A type, and the words that say so."""

    type: WorkloadType
    words: str
    weight: Weight = Weight.WORK


@lru_cache(REMEMBERED)
def command_hints(text: str, *, ends: bool, made: bool = False) -> tuple[Hint, ...]:
    """All that a command or a script does; what only prepares is left out. `made`: by a kind whose pods end."""
    text = NOISE_PATTERN.sub(" ", text[:LONGEST].lower())
    text = _LISTED.sub(" ", text)  # ["vllm", "serve"] within a program
    text = _GENERIC.sub(_after_its_folder, text)
    text = _FOLDERS.sub("", text)  # a folder is no program: /workspace/megatron-lm/tools/x.py is x.py
    return (
        tuple(_overrides(text))
        or (*_first_of(PROGRAM_PATTERNS, text, Weight.WORK), *_scripts(text, ends=ends))
        or tuple(_first_of(LAUNCHER_PATTERNS, text, Weight.LAUNCHER))
        or tuple(_waits(text, WAITING_PATTERN if made else DOZING_PATTERN))
        or tuple(_looks(text, ends=ends))
    )


def does_something(text: str) -> bool:
    """Whether anything but preparation is in a command, its shell left out."""
    return _BARE_SHELL.fullmatch(NOISE_PATTERN.sub(" ", text[:LONGEST].lower())) is None


def _overrides(text: str) -> Iterator[Hint]:
    for kind, pattern in OVERRIDE_PATTERNS.items():
        match = pattern.search(text)
        if match:
            yield Hint(kind, match.group(0).rpartition(" ")[2])


def _after_its_folder(script: re.Match[str]) -> str:
    """`mnist/main.py` is called after its folder, if that is called after training; `data/main.py` is anything."""
    folder, name = script.groups()
    trains = any(SCRIPT_WORDS.get(word) is WorkloadType.TRAINING for word in _telling(folder, SCRIPT_WORDS))
    return f"{folder}.{name}" if trains or any(True for _ in _telling(folder, EXERCISES)) else script.group(0)


def _scripts(text: str, *, ends: bool) -> Iterator[Hint]:
    for match in SCRIPT_PATTERN.finditer(text):
        name = match.group("module") or match.group("file")
        kind = _script_type(name, ends=ends)
        if kind:
            yield Hint(kind, match.group(0).removeprefix("-m").strip())


def _script_type(name: str, *, ends: bool) -> WorkloadType | None:
    """By the first word that tells; a server is one, also where what it serves is training."""
    package, _, module = name.rpartition(".")
    words = list(_telling(module, _SCRIPTS)) or [word for word in _telling(package, _SCRIPTS) if _is_an_aim(word)]
    if not words and any(True for _ in _telling(name, EXERCISES)):
        return WorkloadType.TRAINING
    words = [word for word in words if word not in _TESTS] or words  # test_train.py trains, if only a little
    if not _LAST_STEPS.isdisjoint(words):
        return WorkloadType.TRAINING  # prepare_and_train.py
    told = [SCRIPT_WORDS[word] for word in words if word in SCRIPT_WORDS]
    trains = told[:1] == [WorkloadType.TRAINING]
    if words and (not told or (trains and words[0] in ERRAND_VERBS)):
        return WorkloadType.BATCH if ends else WorkloadType.SERVING
    if WorkloadType.SERVING in told and (trains or words[0] in ERRANDS):
        return WorkloadType.SERVING
    return told[0] if told else None


def _is_an_aim(word: str) -> bool:
    """Whether a package may be called after what its modules do: `app.consumer` is no app, `src.train.main` trains."""
    return SCRIPT_WORDS.get(word) is not WorkloadType.SERVING


def _first_of(patterns: Mapping[WorkloadType, re.Pattern[str]], text: str, weight: Weight) -> Iterator[Hint]:
    for kind, pattern in patterns.items():
        match = pattern.search(text)
        if match:
            yield Hint(kind, match.group(0).strip(" -"), weight)


def _waits(text: str, pattern: re.Pattern[str]) -> Iterator[Hint]:
    match = pattern.search(text)
    if match:
        yield Hint(WorkloadType.INTERACTIVE, match.group(0), Weight.WAITS)


def _looks(text: str, *, ends: bool) -> Iterator[Hint]:
    """A look at the GPUs; in what never ends it is no more than that, if a program comes after it."""
    hints = list(_first_of(CHECK_PATTERNS, text, Weight.LOOKS))
    if ends or not SCRIPT_PATTERN.search(text):
        yield from hints


@lru_cache(REMEMBERED)
def variable_hint(name: str) -> Hint | None:
    """By the whole name of an environment variable."""
    found = (Hint(kind, name) for kind, pattern in VARIABLE_PATTERNS.items() if pattern.fullmatch(name.lower()))
    return next(found, None)


@lru_cache(REMEMBERED)
def name_hint(name: str, *, ends: bool) -> Hint | None:
    """By the last word that tells. What ends is no server, whatever its name: it may be a server's benchmark."""
    words = list(_telling(name.lower(), _NAMES))
    if any(word in ERRANDS or NAME_WORDS[word] is WorkloadType.BATCH for word in words):
        words = [word for word in words if word not in METHODS]
    for word in reversed(words):
        if word in ERRANDS:
            return Hint(WorkloadType.BATCH if ends else WorkloadType.SERVING, word)
        kind = NAME_WORDS.get(word)
        if kind and not (ends and kind is WorkloadType.SERVING):
            return Hint(kind, word)
    return None


@lru_cache(REMEMBERED)
def is_machinery(image: str) -> bool:
    """Whether it is a part of the cluster."""
    return MACHINERY_PATTERN.search(image.lower()) is not None


@lru_cache(REMEMBERED)
def image_hints(image: str) -> tuple[Hint, ...]:
    """By words of the image's path and tag."""
    path = image.partition("@")[0].lower()
    host, slash, rest = path.partition("/")
    if slash and ("." in host or ":" in host):
        path = rest
    path, _, tag = path.partition(":")
    words = list(_telling(path, IMAGE_WORDS)) or list(_telling(tag, IMAGE_WORDS))  # tags list what is built in as well
    if words[:1] == [_NIM]:
        words = [_NIM]
    return tuple(Hint(IMAGE_WORDS[word], word) for word in words)


def _telling(text: str, table: Container[str]) -> Iterator[str]:
    """The words that a table knows, in their order; a pair (code-server) before its parts, digits at ends left out."""
    words = [word for word in _BETWEEN.split(text) if word]
    bare = [word.rstrip("0123456789") or word for word in words]
    taken = -1
    for index, word in enumerate(bare):
        pair = "-".join(bare[index : index + 2])
        if index == taken:
            continue
        if pair in table:
            taken = index + 1
            yield pair
        elif words[index] in table:
            yield words[index]
        elif word in table:
            yield word
