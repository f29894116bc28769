"""Reads Kubernetes quantities exactly, without rounding.

Source: https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/
"""

import re
from decimal import ROUND_CEILING, Context, Decimal

from webhook.objects.refusal import Reason, Refused

_QUANTITY = re.compile(
    r"([+-]?(?:\d{1,30}(?:\.\d{0,30})?|\.\d{1,30}))(?:[eE]([+-]?\d{1,2})|([numkMGTPE]|[KMGTPE]i)?)", re.ASCII
)
_EXACT = Context(prec=200)
"""The precision for every digit that the pattern accepts, because the default context would round at 28."""
_PARAMETER = ("{{", "$(", "${")
"""The starts by which Argo, Tekton and Katib write a value that is filled in later."""
MOST_GPUS = 1_000_000
"""More GPUs than any cluster has. Below it, sums and products of demands are exact."""
_SUFFIX: dict[str | None, Decimal] = {
    None: Decimal(1),
    "": Decimal(1),
    "n": Decimal("1e-9"),
    "u": Decimal("1e-6"),
    "m": Decimal("1e-3"),
    **{letter: Decimal(1000) ** power for power, letter in enumerate("kMGTPE", start=1)},
    **{f"{letter}i": Decimal(1024) ** power for power, letter in enumerate("KMGTPE", start=1)},
}


def quantity(value: object, field: str) -> Decimal:
    """Return the number that a quantity stands for, such as "8", "8000m", "1k", 8 or 0.5.

    Raises Refused naming the field if the value is not a quantity.
    """
    if type(value) is str and value.isdecimal() and value.isascii() and len(value) <= 30:  # noqa: PLR2004
        return Decimal(value)  # the hot path: almost every request is a bare integer
    # JSON has integers of any length; Python refuses to print those with many thousand digits.
    endless = isinstance(value, int) and value.bit_length() > 1024  # noqa: PLR2004
    text = "" if isinstance(value, bool) or endless else str(value)
    match = _QUANTITY.fullmatch(text)
    if match is None:
        raise Refused(Reason.INVALID, "no-quantity", field, value=text[:40])
    number, exponent, suffix = match.groups()
    return _EXACT.multiply(Decimal(number), Decimal(f"1e{exponent}") if exponent else _SUFFIX[suffix])


def is_parameter(value: object) -> bool:
    """Tell whether a value is a parameter, which a workflow fills in when a step runs."""
    return isinstance(value, str) and value.startswith(_PARAMETER)


def gpus(value: object, field: str, units: Decimal | None = None) -> Decimal:
    """Return a request for an extended resource: a whole quantity that is not negative, as Pod validation asks.

    For a resource of parts, `units` of them make a GPU, and the result is the number of whole GPUs needed; with 0 any
    amount is a part of one. Memory may be written as memory: "16Gi".

    Custom resources reach the webhook before any such validation, so "0.5" and "-1" do arrive. A workflow's parameter
    counts as one GPU. Raises Refused naming the field.
    """
    if is_parameter(value):
        return Decimal(1)
    number = quantity(value, field)
    whole = min(number, Decimal(1)) if units == 0 else number
    if units:
        whole = (number / units).to_integral_value(ROUND_CEILING)
    if not 0 <= whole <= MOST_GPUS or (units is None and whole != whole.to_integral_value()):
        raise Refused(Reason.INVALID, "no-gpu-count", field, value=str(value)[:40])
    return whole if units is None else whole.to_integral_value(ROUND_CEILING)


def written(number: Decimal) -> str:
    """Return a number as a person writes it: "6", "0.125", not "6.000" or "1E+3"."""
    text = f"{number:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def written_gpus(number: Decimal) -> str:
    """Return a number of GPUs as text: "1 GPU", "0.5 GPUs"."""
    return f"{written(number)} {'GPU' if number == 1 else 'GPUs'}"
