"""A command that takes one struct, which typer fills: each field is an option."""

from collections.abc import Callable, Mapping
from inspect import Parameter, Signature
from typing import Annotated, Any, TypeVar, get_type_hints

import typer
from msgspec import NODEFAULT, Struct, structs

Options = TypeVar("Options", bound=Struct)


def with_options(
    options: type[Options], table: Mapping[str, dict[str, Any]] | None = None
) -> Callable[[Callable[[Options], None]], Callable[..., None]]:
    """Make a command of a function that takes `options`.

    Each field is Annotated with its typer.Option, or the table has what that takes; `flag` is its name.
    """

    def command_of(function: Callable[[Options], None]) -> Callable[..., None]:
        def command(**values: object) -> None:
            function(options(**values))

        hints = get_type_hints(options, include_extras=True)
        command.__doc__ = function.__doc__
        parameters = []
        for field in structs.fields(options):
            default = Parameter.empty if field.default is NODEFAULT else field.default
            annotation = hints[field.name]
            if table is not None:
                about = dict(table[field.name])
                flags = (about.pop("flag"),) if "flag" in about else ()
                annotation = Annotated[annotation, typer.Option(*flags, **about)]
            parameters.append(Parameter(field.name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation))
        command.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
        return command

    return command_of
