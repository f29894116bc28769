"""The base of values that people and programs see, whose JSON has field names in camelCase as in Kubernetes."""

import re
from decimal import Decimal

import msgspec

Gpus = int | float
"""GPUs as programs read them: 6 or 0.125."""


class Shown(msgspec.Struct, frozen=True, rename="camel"):
    """A part of an answer. The field gpus_per_pod is gpusPerPod in JSON."""


_SECRET = re.compile(r"(?<=/)[a-z0-9-]{26,63}(?=/(?:mutate|validate)\b)")
"""The secret first segment of the webhook's paths, which the API server prints if it gets no answer."""


def without_secret(said: str) -> str:
    """Replace the secret in paths of the API server's message, because pipelines and tickets store the output."""
    return _SECRET.sub("SECRET", said)


def as_number(gpus: Decimal) -> Gpus:
    """Return the number, as an integer if it is whole."""
    return int(gpus) if gpus == gpus.to_integral_value() else float(gpus)
