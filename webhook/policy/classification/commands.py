"""Guesses from commands: what runs in the containers, and what owners say they run."""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

from webhook.policy.classification.case import Case
from webhook.policy.classification.hints import REMEMBERED, Hint, Weight
from webhook.policy.classification.patterns import (
    CHECK_PATTERNS,
    DOZING_PATTERN,
    LAUNCHER_PATTERNS,
    NOISE_PATTERN,
    OVERRIDE_PATTERNS,
    PROGRAM_PATTERNS,
    SCRIPT_PATTERN,
    WAITING_PATTERN,
)
from webhook.policy.classification.scripts import after_its_folder, script_type
from webhook.policy.classification.vocabulary.command_phrases import LONGEST
from webhook.policy.workloads.workload_types import WorkloadType

TRAINING, SERVING, BATCH, INTERACTIVE = WorkloadType

_FOLDERS = re.compile(r"(?<![\w/.+~-])(?!/dev/null)[\w.+~-]*/(?:[\w.+-]+/)*(?=[\w.-])")
_BARE_SHELL = re.compile(r"\s*(?:\S*sh(?: +-\w+)* +-\w*c)?\s*")
_LISTED = re.compile(r"""['"]\s*,\s*['"]""")
_GENERIC = re.compile(r"([\w-]{1,80})/((?:main|run|start|launch|entrypoint)\.(?:py|sh))\b")


AT_ONCE = (INTERACTIVE, TRAINING, SERVING, BATCH)
"""Of several things that a workload runs at once: a person's session, then what would be lost, then who waits."""

AT_ONCE_AND_ENDS = (INTERACTIVE, TRAINING, BATCH, SERVING)
"""Where it ends, a server beside other work is that work's."""


def by_command(case: Case) -> Hint | None:
    """The heaviest hint of all commands."""
    texts = list(case.commands())
    if case.ends and texts and not any(does_something(text) for text in texts):
        return Hint(BATCH, texts[0].split(" ")[0])  # echo hello, in a Job called training-demo
    told = {text: command_hints(text, ends=case.ends, made=case.made_by_a_kind_that_ends) for text in texts}
    order = AT_ONCE_AND_ENDS if case.ends else AT_ONCE
    hints = (hint for found in told.values() for hint in found)
    hint = min(hints, key=lambda hint: (-hint.weight, order.index(hint.type)), default=None)
    waits = hint is not None and hint.weight is Weight.WAITS
    return None if waits and (case.member or _another_works(told)) else hint


def _another_works(told: Mapping[str, Sequence[Hint]]) -> bool:
    """Whether another command does something unknown: then a command that waits, waits for that, not for a person."""
    return any(does_something(text) for text, hints in told.items() if not hints)


@lru_cache(REMEMBERED)
def command_hints(text: str, *, ends: bool, made: bool = False) -> tuple[Hint, ...]:
    """The hints of a command or a script; what only prepares is left out. `made`: by a kind whose pods end."""
    text = NOISE_PATTERN.sub(" ", text[:LONGEST].lower())
    text = _LISTED.sub(" ", text)  # ["vllm", "serve"] within a program
    text = _GENERIC.sub(after_its_folder, text)
    text = _FOLDERS.sub("", text)  # a folder is no program: /workspace/megatron-lm/tools/x.py is x.py
    return (
        tuple(_overrides(text))
        or (*_first_of(PROGRAM_PATTERNS, text, Weight.WORK), *_scripts(text, ends=ends))
        or tuple(_first_of(LAUNCHER_PATTERNS, text, Weight.LAUNCHER))
        or tuple(_waits(text, WAITING_PATTERN if made else DOZING_PATTERN))
        or tuple(_looks(text, ends=ends))
    )


def does_something(text: str) -> bool:
    """Whether a command does more than prepare, its shell left out."""
    return _BARE_SHELL.fullmatch(NOISE_PATTERN.sub(" ", text[:LONGEST].lower())) is None


def _overrides(text: str) -> Iterator[Hint]:
    for workload_type, pattern in OVERRIDE_PATTERNS.items():
        match = pattern.search(text)
        if match:
            yield Hint(workload_type, match.group(0).rpartition(" ")[2])


def _scripts(text: str, *, ends: bool) -> Iterator[Hint]:
    for match in SCRIPT_PATTERN.finditer(text):
        name = match.group("module") or match.group("file")
        workload_type = script_type(name, ends=ends)
        if workload_type:
            yield Hint(workload_type, match.group(0).removeprefix("-m").strip())


def _first_of(patterns: Mapping[WorkloadType, re.Pattern[str]], text: str, weight: Weight) -> Iterator[Hint]:
    for workload_type, pattern in patterns.items():
        match = pattern.search(text)
        if match:
            yield Hint(workload_type, match.group(0).strip(" -"), weight)


def _waits(text: str, pattern: re.Pattern[str]) -> Iterator[Hint]:
    match = pattern.search(text)
    if match:
        yield Hint(INTERACTIVE, match.group(0), Weight.WAITS)


def _looks(text: str, *, ends: bool) -> Iterator[Hint]:
    """A look at the GPUs; if the workload doesn't end, a look before a script tells nothing."""
    hints = list(_first_of(CHECK_PATTERNS, text, Weight.LOOKS))
    if ends or not SCRIPT_PATTERN.search(text):
        yield from hints
