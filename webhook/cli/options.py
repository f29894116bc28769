"""Commands: each parameter of a function is an option or an argument, which options.yaml describes."""

from collections.abc import Callable, Mapping
from inspect import Parameter, Signature, signature
from typing import Annotated, Any

import typer
from msgspec import NODEFAULT, Struct, structs

from webhook.objects.data_files import data_file

_OPTIONS: Mapping[str, Mapping[str, dict[str, Any]]] = data_file(__name__, "options.yaml")


def with_options(
    function: Callable[..., None], table: Mapping[str, dict[str, Any]] | None = None
) -> Callable[..., None]:
    """Make a command of a function. A parameter that is a struct stands for the struct's fields.

    The table has what typer takes of each parameter; a parameter that it lacks is Annotated. `flag` has the names of an
    option, and `argument` the placeholder of an argument.
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
