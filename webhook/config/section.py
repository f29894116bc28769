"""What all sections of the policy file have in common."""

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel


class Section(BaseModel):
    """Base of all sections: camelCase in the file, an unknown field is an error."""

    model_config = ConfigDict(alias_generator=to_camel, extra="forbid", frozen=True, use_enum_values=False)
