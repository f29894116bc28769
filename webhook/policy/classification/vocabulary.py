"""The words in commands, scripts' names, images and names that hint at a type: weak evidence, called a guess.

They stand in commands.yaml and words.yaml.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from itertools import groupby
from operator import itemgetter
from typing import Any

import msgspec

from webhook.objects.data_files import data_file
from webhook.policy.workloads.workload_types import WorkloadType

LONGEST = 4096
"""Characters of a text that are searched: an entrypoint script may be a megabyte."""
_ANY_PROGRAM = "* "


class Words(frozenset[str]):
    """Words with blanks between them, in groups."""

    @classmethod
    def read(cls, groups: Iterable[str]) -> "Words":
        return cls(word for group in groups for word in group.split())


class WordTypes(dict[str, WorkloadType]):
    """Words with the type that they hint at."""

    @classmethod
    def read(cls, types: Mapping[str, Iterable[str]]) -> "WordTypes":
        return cls(
            {word: WorkloadType(of) for of, groups in types.items() for group in groups for word in group.split()}
        )


class Phrases(tuple[str, ...]):
    """Phrases with commas between them, in groups."""

    __slots__ = ()

    @classmethod
    def read(cls, groups: Iterable[str]) -> "Phrases":
        return cls(phrase.strip() for group in groups for phrase in group.split(","))


class Expression(str):
    """A regular expression, which may go over several lines of the file."""

    __slots__ = ()

    @classmethod
    def read(cls, text: str) -> "Expression":
        return cls(text.replace("\n", ""))


class Commands(msgspec.Struct, frozen=True, eq=False, forbid_unknown_fields=True):
    """Phrases, and what no phrase can say, as regular expressions. One is equal to itself alone, and hashed at once."""

    phrases: Phrases = Phrases()
    patterns: tuple[Expression, ...] = ()


class CommandTables(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The file commands.yaml; the comments in it explain each field."""

    overrides: Mapping[WorkloadType, Commands]
    programs: Mapping[WorkloadType, Commands]
    launchers: Mapping[WorkloadType, Commands]
    waiting: Commands
    dozing: Commands
    checks: Mapping[WorkloadType, Commands]
    variables: Mapping[WorkloadType, Commands]
    noise: Expression
    script: Expression


class WordTables(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """The file words.yaml; the comments in it explain each field."""

    script_words: WordTypes
    exercises: Words
    name_words: WordTypes
    system_images: Words
    methods: Words
    one_off_verbs: Words
    one_off_tasks: Words
    image_words: WordTypes


def _table(name: str, of: Any) -> Any:
    return msgspec.convert(data_file(__name__, name), of, dec_hook=lambda to, read: to.read(read))


COMMANDS: CommandTables = _table("commands.yaml", CommandTables)
WORDS: WordTables = _table("words.yaml", WordTables)


@cache
def pattern_of(commands: Commands) -> re.Pattern[str]:
    """One expression for all phrases and patterns of an entry; a phrase begins and ends where a word does.

    It is made when it is first asked for: all of them take a quarter of what a command takes to start.
    """
    of_any = [
        _expression(each.removeprefix(_ANY_PROGRAM)) for each in commands.phrases if each.startswith(_ANY_PROGRAM)
    ]
    of_one = [_expression(each) for each in commands.phrases if not each.startswith(_ANY_PROGRAM)]
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
