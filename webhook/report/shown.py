"""The base of values that people and programs see, whose JSON has field names in camelCase as in Kubernetes."""

from decimal import Decimal

import msgspec

Gpus = int | float
"""GPUs as programs read them: 6 or 0.125."""


class Shown(msgspec.Struct, frozen=True, rename="camel"):
    """A part of an answer. The field gpus_per_pod is gpusPerPod in JSON."""


def as_number(gpus: Decimal) -> Gpus:
    """Return the number, as an integer if it is whole."""
    return int(gpus) if gpus == gpus.to_integral_value() else float(gpus)
