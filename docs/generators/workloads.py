"""Puts the table of kinds into docs/workloads.md, and the words that guesses know into docs/workload-words.md."""

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from generators.tables import anchor, bullet, code, either, filled, table, words
from webhook.policy.classification.commands import COMMANDS, WORDS, Commands, Phrases
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


def workloads() -> str:
    """The page of kinds with its tables made anew."""
    by_name = sorted(BUILT_IN.rows, key=lambda row: (row.kind.lower(), row.group))
    page = (DOCS / "workloads.md").read_text(encoding="utf-8")
    page = filled("kinds", table(("kind", "API group", "type"), map(_short, by_name)), page)
    page = filled("labels", table(("label", "type"), _labels()), page)
    return filled("groups", "\n\n".join(_groups()), page)


def workload_words() -> str:
    """The page of words with its lists made anew."""
    made, page = dict(_words()), (DOCS / "workload-words.md").read_text(encoding="utf-8")
    assert [found[1] for found in _WORDS.finditer(page)] == [*made]  # noqa: S101
    return _WORDS.sub(lambda found: f"{found[1]} -->\n\n{made[found[1]]}\n\n", page)


def _short(row: KindRow) -> tuple[str, str, str]:
    group = row.group or "core"
    return row.kind, f"[{group}](#{anchor(group)})", _type(row, short=True)


def _type(row: KindRow, *, short: bool = False) -> str:
    """What the kind says of the type; in short without the sources that may say otherwise."""
    if row.type:
        return row.type + (", unless it runs something else" if short and row.unless else _unless(row.unless))
    if row.usual:
        return f"usually {row.usual}" + ("" if short else _unless(row.before_usual))
    types = dict.fromkeys(row.fields.values())
    told = [f"{workload_type} where {either(_fields(row, workload_type))} is filled, else " for workload_type in types]
    return "".join([*told, "told by what runs in it"])


def _fields(row: KindRow, workload_type: WorkloadType) -> list[str]:
    return [code(field) for field, told in row.fields.items() if told is workload_type]


def _unless(sources: Iterable[str]) -> str:
    names = dict.fromkeys(_SOURCES[source] for source in sources if source in _SOURCES)
    return f", unless a {either(names)} says otherwise" if names else ""


def _groups() -> Iterator[str]:
    for group in sorted({row.group for row in BUILT_IN.rows}):
        yield f"### {group or 'core'}"
        yield "\n".join(line for row in BUILT_IN.rows if row.group == group for line in _entry(row))


def _entry(row: KindRow) -> Iterator[str]:
    labels = ", ".join(code(f"{key}={value}" if value else key) for key, value in row.labels.items())
    said = f" {'Labels' if ',' in labels else 'Label'} on its pods: {labels}." if labels else ""
    named = f" {code(row.class_field)} counts for all pods whose template names no class." if row.class_field else ""
    gang = " A [gang](gangs.md)." if row.gang else ""
    scale = f" A scale changes {code(row.scale)}, and is reviewed." if row.scale else ""
    yield bullet(f"**[{row.kind}]({row.source})**: {_type(row)}.{gang}{scale}{said}{named}{_runtime(row)}")
    for templates in row.templates:
        yield bullet(_place(templates), 1)
    if row.wraps:
        yield bullet(f"{code(row.wraps)}: a whole object, told by its own row; one of another kind is left out", 1)
    if not row.templates and not row.wraps:
        asked = " or ".join(map(code, row.gpu_fields))
        told = f"its GPUs are asked for at {asked}" if asked else "its operator decides what its pods are"
        yield bullet(f"no pod template; {told}", 1)


def _runtime(row: KindRow) -> str:
    if row.runtime is None:
        return ""
    kinds = either(list(row.runtime.plurals))
    place = code(row.runtime.reference)
    return f" Its pods are made of the {kinds} that {place} names; paths that begin with `runtime` lie in that."


def _place(templates: Templates) -> str:
    place = ".".join(filter(None, (templates.holder, templates.path)))
    told = [_says(templates.count)] + [_says(templates.times) for _ in range(templates.times is not once)]
    told += [_says(templates.left)] if templates.left else []
    made = f"; {_says(templates.made)}" if templates.made else ""
    least = f"; a gang needs: {_says(templates.least)}" if templates.least else ""
    between = ", ".join(code(each.metadata) for each in templates.between)
    passed = f"; labels and annotations at {between} count too" if between else ""
    return f"{code(place) or 'the object itself'}: {'; and these '.join(told)}{made}{least}{passed}"


def _says(count: object) -> str:
    text = (count.__doc__ or "").strip().rstrip(".")
    return text[:1].lower() + text[1:]


def _labels() -> Iterator[tuple[str, str]]:
    for each in POD_LABELS:
        label = code(f"{each.key}={each.value}" if each.value else each.key)
        yield f"[{label}]({each.source})", each.type or f"usually {each.usual}"


def _words() -> Iterator[tuple[str, str]]:
    """What stands below each heading, those of commands first."""
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
    """Its heading, and below it words that say no type of their own, and a list for each type."""
    parts = [*_block(words(", ".join(sorted(plain))))]
    for workload_type, commands in found.items():
        parts.append(f"### {title}: {workload_type}")
        parts += _block(words(", ".join(commands.phrases)))
        parts += _block("\n".join(commands.patterns))
    yield title, "\n\n".join(parts)


def _block(text: str) -> Iterator[str]:
    if text:
        yield f"```text\n{text}\n```"


def _by_type(types: Mapping[str, WorkloadType]) -> dict[WorkloadType, Commands]:
    words_of = {found: [word for word, each in types.items() if each is found] for found in types.values()}
    return {workload_type: Commands(Phrases(found)) for workload_type, found in words_of.items()}
