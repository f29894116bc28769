"""The values that people and programs see. Their JSON has the field names of Kubernetes' style."""

import re
from decimal import Decimal

import msgspec

Gpus = int | float
"""GPUs as programs read them: 6 or 0.125."""


class Shown(msgspec.Struct, frozen=True, rename="camel"):
    """A part of an answer: gpusPerPod in JSON is gpus_per_pod here."""


_SECRET = re.compile(r"(?<=/)[a-z0-9-]{26,63}(?=/(?:mutate|validate)\b)")
"""The first segment of the webhook's paths. The API server names them if it gets no answer."""


def without_secret(said: str) -> str:
    """Hide the secret path in the API server's words, because a pipeline or a ticket stores the output."""
    return _SECRET.sub("SECRET", said)


def as_number(gpus: Decimal) -> Gpus:
    """Return the number, as an integer if it is whole."""
    return int(gpus) if gpus == gpus.to_integral_value() else float(gpus)
