"""The sections of a policy file as pydantic reads them."""

import re

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict
from pydantic.alias_generators import to_camel


class Section(BaseModel):
    """Base of all sections: camelCase in the file, an unknown field is an error."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="forbid",
        frozen=True,
        use_enum_values=False,
        defer_build=True,  # what reads a section is made with the first file, once for all, and not where none is read
    )


OFF_IS_A_WORD = BeforeValidator(lambda value: "Off" if value is False else value)
"""YAML takes a bare Off for false."""


def matching(pattern: str, words: str) -> AfterValidator:
    """Text of a form that words describe, such as `should be a plural of small letters, such as jobs`."""

    def check(text: str) -> str:
        if re.fullmatch(pattern, text) is None:
            raise ValueError(f'"{text[:63]}": {words}')
        return text

    return AfterValidator(check)
