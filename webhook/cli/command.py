"""The options of commands, and the output of their answers: a table as in kubectl, JSON, YAML or Markdown.

Each parameter of a command's function is an option or an argument, which options.yaml or an Annotated type describes.
Without an answer the command prints the reason, and ends with exit code 2.
"""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from inspect import Parameter, Signature, signature
from typing import Annotated, Any, Literal, NoReturn

import msgspec
import typer
import yaml
from msgspec import NODEFAULT, Struct, structs

from webhook.admission.review import flat
from webhook.objects.data_files import data_file

_OPTIONS: Mapping[str, Mapping[str, dict[str, Any]]] = data_file(__name__, "options.yaml")


def with_options(
    function: Callable[..., None], table: Mapping[str, dict[str, Any]] | None = None
) -> Callable[..., None]:
    """Return a function for typer that calls this one. A parameter of a Struct type becomes one for each field.

    `table`, by default that of options.yaml, has the keyword arguments of typer.Option by parameter. There `flag` has
    the option's names, and `argument` makes it a typer.Argument with that metavar. Other parameters stay as they are.
    """
    described = {**_OPTIONS["shared"], **_OPTIONS.get(function.__name__, {})} if table is None else table
    found: list[Parameter] = []
    groups: dict[str, type[Struct]] = {}
    for each in signature(function).parameters.values():
        if isinstance(each.annotation, type) and issubclass(each.annotation, Struct):
            groups[each.name] = each.annotation
            for field in structs.fields(each.annotation):
                default = Parameter.empty if field.default is NODEFAULT else field.default
                found.append(Parameter(field.name, Parameter.KEYWORD_ONLY, default=default, annotation=field.type))
        else:
            found.append(each.replace(kind=Parameter.KEYWORD_ONLY))

    def run(**values: object) -> None:
        for name, group in groups.items():
            values[name] = group(**{field: values.pop(field) for field in group.__struct_fields__})
        function(**values)

    for index, parameter in enumerate(found):
        if about := dict(described.get(parameter.name, {})):
            metavar, flags = about.pop("argument", None), about.pop("flag", "").split()
            typed = typer.Argument(metavar=metavar, **about) if metavar else typer.Option(*flags, **about)
            found[index] = parameter.replace(annotation=Annotated[parameter.annotation, typed])
    run.__doc__ = function.__doc__
    run.__signature__ = Signature(found)  # type: ignore[attr-defined]
    return run


BAD_INPUT = 2
FORMAT = "gpu-tiers.dev/v1"
"""The format for programs (docs/questions.md): fields may be added, and none is removed or renamed."""


def fail(sentence: str) -> NoReturn:
    """End the program with 2, and a sentence on stderr."""
    typer.secho(sentence, fg="red", err=True, color=sys.stderr.isatty())
    raise typer.Exit(BAD_INPUT)


def warn(sentence: str) -> None:
    """Print a caveat of an answer on stderr, as kubectl prints warnings; programs read stdout."""
    typer.secho(f"Warning: {flat(sentence)}", fg="yellow", err=True, color=sys.stderr.isatty())


Form = Literal["table", "json", "yaml", "markdown"]


class Table(Struct, frozen=True):
    """Rows under the names of their columns, with an optional title."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    title: str = ""


class Answer(Struct, frozen=True):
    """An answer. People read the tables, then the notes, then what is `missing`; programs read the `value`.

    JSON and YAML have a `value` that is a sequence under the key `items`.
    """

    value: Any
    tables: Sequence[Table]
    notes: Sequence[str] = ()
    missing: Sequence[str] = ()


def write(answer: Answer, output: Form) -> None:
    match output:
        case "json":
            text = msgspec.json.format(msgspec.json.encode(_built(answer)), indent=2).decode() + "\n"
        case "yaml":
            text = yaml.safe_dump(_built(answer), sort_keys=False, allow_unicode=True, width=4096)
        case "markdown":
            text = "\n".join(_markdown(answer))
        case _:
            text = "\n".join(_plain(answer))
    sys.stdout.write(text)


def versioned(value: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of an answer for programs, with `format` before them."""
    return {"format": FORMAT, **value}


def _built(answer: Answer) -> dict[str, Any]:
    built = msgspec.to_builtins(answer.value, str_keys=True)
    return versioned(built if isinstance(built, dict) else {"items": built})


def _plain(answer: Answer) -> Iterator[str]:
    """Yield the lines as kubectl prints them: columns three spaces apart, their names in capitals."""
    for table in answer.tables:
        if table.title:
            yield table.title
        cells = [[flat(each) for each in line] for line in ([each.upper() for each in table.columns], *table.rows)]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        for line in cells:
            yield "   ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        yield ""
    yield from (f"{flat(note)}\n" for note in (*answer.notes, *answer.missing))


def _markdown(answer: Answer) -> Iterator[str]:
    for table in answer.tables:
        if table.title:
            yield f"### {table.title}\n"
        for cells in (table.columns, ["---"] * len(table.columns), *table.rows):
            yield f"| {' | '.join(map(_escaped, cells))} |"
        yield ""
    yield from (f"{_escaped(note)}\n" for note in (*answer.notes, *answer.missing))


_MARKUP = str.maketrans({each: f"\\{each}" for each in "\\`*_[]<>|"})


def _escaped(text: str) -> str:
    return flat(text).translate(_MARKUP)
