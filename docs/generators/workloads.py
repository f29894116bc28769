"""Writes labels into workloads.md, kinds into workload-kinds.md, and the words of guesses into workload-words.md."""

import inspect
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from pathlib import Path

from generators.tables import bullet, code, either, filled, table, words
from webhook.policy.classification.commands import COMMANDS, WORDS, Commands
from webhook.policy.workloads.kind_table import BUILT_IN, POD_LABELS, KindRow, Templates, WorkloadType
from webhook.policy.workloads.pod_counts import once

DOCS = Path(__file__).resolve().parents[1]
_WORDS = re.compile(r"(?<=<!-- words: )(.+?) -->\n.*?(?=<!-- /words -->)", re.DOTALL)
_SOURCES = {
    "command": "command",
    "variable": "variable",
    "name": "name",
    "task": "name",
    "image": "image",
    "probe": "readiness probe",
    "port": "port",
}
"""What a page calls the sources of guesses. A JobSet's `server` is its name and its image together."""
_MOSTLY = ("command", "variable", "name", "image")
_MOSTLY_SERVING = ("command", "variable", "image", "name", "readiness probe", "port")
"""The orders of guesses that the page says once, for all kinds with a usual type."""
_SHORT = 6
"""A count of more words is on the page once."""


def workloads() -> str:
    """Return the page of types with a new table of labels."""
    return filled("labels", table(("label", "type"), _labels()), (DOCS / "workloads.md").read_text(encoding="utf-8"))


def workload_kinds() -> str:
    """Return the page of pod templates with new lists."""
    return filled("groups", "\n\n".join(_groups()), (DOCS / "workload-kinds.md").read_text(encoding="utf-8"))


def workload_words() -> str:
    """Return the page of words with new lists."""
    made, page = dict(_words()), (DOCS / "workload-words.md").read_text(encoding="utf-8")
    assert [found[1] for found in _WORDS.finditer(page)] == [*made]  # noqa: S101
    return _WORDS.sub(lambda found: f"{found[1]} -->\n\n{made[found[1]]}\n\n", page)


def _answer(row: KindRow) -> str:
    """Return the type of a kind, without the guesses that may say otherwise."""
    if row.type:
        return row.type
    if row.usual:
        return f"usually {row.usual}"
    types = dict.fromkeys(row.fields.values())
    by_field = [f"{workload_type} with {either(_fields(row, workload_type))}, else " for workload_type in types]
    return "".join([*by_field, "by what runs in it"])


def _type(row: KindRow) -> str:
    """Return the answer, with the guesses that may say otherwise in parentheses, unless the page says their order."""
    sources = row.unless if row.type else row.before_usual if row.usual else ()
    names = tuple(dict.fromkeys(_SOURCES[source] for source in sources if source in _SOURCES))
    if not row.type and row.usual:
        if names == (_MOSTLY_SERVING if row.usual == WorkloadType.SERVING else _MOSTLY):
            return _answer(row)
        names = names or ("no guesses",)
    return _answer(row) + (f" ({', '.join(names)})" if names else "")


def _fields(row: KindRow, workload_type: WorkloadType) -> list[str]:
    return [code(field) for field, field_type in row.fields.items() if field_type is workload_type]


def _groups() -> Iterator[str]:
    rows = sorted(BUILT_IN.rows, key=lambda row: row.group)
    homes: dict[str, KindRow] = {}
    templates = [(each, row) for row in rows for each in row.templates]
    for each, row in sorted(templates, key=lambda it: len(_path(it[0]))):
        homes.setdefault(_count(each), row)
    for group, same in groupby(rows, lambda row: row.group):
        yield f"## {group or 'core'}"
        yield "\n".join(line for row in same for line in _entry(row, homes))


def _entry(row: KindRow, homes: Mapping[str, KindRow]) -> Iterator[str]:
    """Yield the lines of a kind. A long count is written once, at its home: the kind with the shortest path to it."""
    labels = ", ".join(code(f"{key}={value}" if value else key) for key, value in row.labels.items())
    said = f" Pod label{'s' if ',' in labels else ''}: {labels}." if labels else ""
    named = f" Class for templates without one: {code(row.class_field)}." if row.class_field else ""
    gang = " Gang." if row.gang else ""
    scale = f" Scale: {code(row.scale)}." if row.scale else ""
    yield bullet(f"**[{row.kind}]({row.source})**: {_type(row)}.{gang}{scale}{said}{named}{_runtime(row)}")
    alike: dict[str, list[str]] = {}
    for templates in row.templates:
        count, home = _count(templates), homes[_count(templates)]
        if home is not row and len(count.split()) > _SHORT:
            count = f"as [{home.kind}](#{home.group.replace('.', '')})"
        path = code(".".join(_path(templates))) or "the object itself"
        alike.setdefault(count + _beside(templates), []).append(path)
    for count, paths in alike.items():
        yield bullet(f"{', '.join(paths)}: {count}", 1)
    if row.wraps:
        yield bullet(f"{code(row.wraps)}: whole objects of kinds in this list; others are ignored", 1)
    if row.gpu_fields and not row.templates and not row.wraps:
        yield bullet(f"no pod template; GPUs at {' or '.join(map(code, row.gpu_fields))}", 1)


def _path(templates: Templates) -> list[str]:
    return [step for part in (templates.holder, templates.path) if part for step in part.split(".")]


def _runtime(row: KindRow) -> str:
    if row.runtime is None:
        return ""
    kinds, field = either(list(row.runtime.plurals)), code(row.runtime.reference)
    return f" Pods come from the {kinds} at {field}, where the paths with `runtime` begin."


def _count(templates: Templates) -> str:
    times = [_says(templates.times)] if templates.times is not once else []
    counts = ", times ".join([_says(templates.count), *times])
    left = f"; and {_says(templates.left)}" if templates.left else ""
    made = f"; {_says(templates.made)}" if templates.made else ""
    least = f"; a gang needs {_says(templates.least)}" if templates.least else ""
    return f"{counts}{left}{made}{least}"


def _beside(templates: Templates) -> str:
    """Return where labels and annotations of a template's pods count too."""
    between = ", ".join(code(each.metadata) for each in templates.between)
    return f"; also {between}" if between else ""


def _says(count: object) -> str:
    """Return the first paragraph of a count's docstring, as a part of a sentence."""
    text = " ".join(inspect.cleandoc(count.__doc__ or "").partition("\n\n")[0].split()).rstrip(".")
    return text[:1].lower() + text[1:]


def _labels() -> Iterator[tuple[str, str]]:
    for each in POD_LABELS:
        label = code(f"{each.key}={each.value}" if each.value else each.key)
        yield f"[{label}]({each.source})", each.type or f"usually {each.usual}"


def _words() -> Iterator[tuple[str, str]]:
    """Yield the title and the lists of each section, those of commands first."""
    yield from _section("Images of cluster components", {}, WORDS.system_images)
    yield from _section("Options that change the type", COMMANDS.overrides)
    yield from _section("Programs", COMMANDS.programs)
    yield from _section("Launchers", COMMANDS.launchers)
    yield from _section("Commands that wait", {WorkloadType.INTERACTIVE: COMMANDS.dozing})
    yield from _section("Commands that look at the GPUs", COMMANDS.checks)
    yield from _section("Names of variables", COMMANDS.variables)
    yield from _section("Words of scripts", _by_type(WORDS.script_words))
    trained = _by_type(dict.fromkeys(sorted(WORDS.exercises), WorkloadType.TRAINING))
    yield from _section("Scripts named after what is trained", trained)
    yield from _section("Words of images", _by_type(WORDS.image_words))
    yield from _section("Words of names", _by_type(WORDS.name_words))
    yield from _section("Words of serving or batch", {}, WORDS.one_off_tasks)
    yield from _section("Ports", _by_type({str(port): workload_type for port, workload_type in WORDS.ports.items()}))


def _section(
    title: str, found: Mapping[WorkloadType, Commands], plain: Iterable[str] = ()
) -> Iterator[tuple[str, str]]:
    """Yield one title with its text: the words without a type of their own, then a list for each type."""
    parts = [*_block(words(", ".join(sorted(plain))))]
    for workload_type, commands in found.items():
        parts.append(f"### {title}: {workload_type}")
        parts += _block(words(", ".join(commands.phrases)))
        parts += _block("\n".join(each.replace("\n", "") for each in commands.patterns))
    yield title, "\n\n".join(parts)


def _block(text: str) -> Iterator[str]:
    if text:
        yield f"```text\n{text}\n```"


def _by_type(types: Mapping[str, WorkloadType]) -> dict[WorkloadType, Commands]:
    words_of = {found: [word for word, each in types.items() if each is found] for found in types.values()}
    return {workload_type: Commands(tuple(found)) for workload_type, found in words_of.items()}
