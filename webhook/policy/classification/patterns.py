"""Compiles the tables of commands; a phrase begins and ends where a word does."""

import re
from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import itemgetter

from webhook.policy.classification.vocabulary.command_phrases import (
    CHECKS,
    DOZING,
    LAUNCHERS,
    NOISE,
    OVERRIDES,
    SCRIPT,
    VARIABLES,
    WAITING,
    Commands,
)
from webhook.policy.classification.vocabulary.name_words import SYSTEM_IMAGES
from webhook.policy.classification.vocabulary.program_phrases import PROGRAMS

_ANY_PROGRAM = "* "


def pattern_of(commands: Commands) -> re.Pattern[str]:
    """One expression for all phrases and patterns of a table's entry."""
    phrases = [phrase.strip() for phrase in commands.phrases.split(",") if phrase]
    of_any = [_expression(each.removeprefix(_ANY_PROGRAM)) for each in phrases if each.startswith(_ANY_PROGRAM)]
    of_one = [_expression(each) for each in phrases if not each.startswith(_ANY_PROGRAM)]
    together = [rf"\w[\w.-]* +(?:{'|'.join(of_any)})"] if of_any else []  # a program's name is read once for all
    every = (*together, *_by_beginning(of_one), *commands.patterns)
    return re.compile(r"(?<![\w.-])(?:" + "|".join(every) + ")", re.DOTALL)


def _by_beginning(expressions: Iterable[str]) -> Iterator[str]:
    """One for all that begin with the same letter, so that most of a text is compared with that alone."""
    for letter, group in groupby(sorted(expressions, key=itemgetter(0)), key=itemgetter(0)):
        yield letter + "(?:" + "|".join(each[1:] for each in group) + ")"


def _expression(phrase: str) -> str:
    words = re.escape(phrase).replace(r"\ ", " +").replace(r"\*", r"\S*")
    return words if phrase.endswith("*") else words + r"(?![\w.-])"


PROGRAM_PATTERNS = {workload_type: pattern_of(commands) for workload_type, commands in PROGRAMS.items()}
OVERRIDE_PATTERNS = {workload_type: pattern_of(commands) for workload_type, commands in OVERRIDES.items()}
LAUNCHER_PATTERNS = {workload_type: pattern_of(commands) for workload_type, commands in LAUNCHERS.items()}
CHECK_PATTERNS = {workload_type: pattern_of(commands) for workload_type, commands in CHECKS.items()}
VARIABLE_PATTERNS = {workload_type: pattern_of(commands) for workload_type, commands in VARIABLES.items()}
WAITING_PATTERN, DOZING_PATTERN = pattern_of(WAITING), pattern_of(DOZING)
NOISE_PATTERN = re.compile(NOISE)
SCRIPT_PATTERN = re.compile(SCRIPT)
SYSTEM_IMAGE_PATTERN = re.compile(rf"(?<![a-z\d])(?:{'|'.join(sorted(SYSTEM_IMAGES))})(?![a-z\d])")
