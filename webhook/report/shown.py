"""The values that people and programs see. Their JSON has the field names of Kubernetes' style."""

from decimal import Decimal

import msgspec

Gpus = int | float
"""GPUs as programs read them: 6 or 0.125."""


class Shown(msgspec.Struct, frozen=True, rename="camel"):
    """A part of an answer: gpusPerPod in JSON is gpus_per_pod here."""


def as_number(gpus: Decimal) -> Gpus:
    """Return the number, as an integer if it is whole."""
    return int(gpus) if gpus == gpus.to_integral_value() else float(gpus)
