"""Reads Kubernetes quantities exactly; never rounds and never guesses.

Source: https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/
"""

import re
from decimal import Decimal

from webhook.policy.refusal import Refused

_QUANTITY = re.compile(r"([+-]?(?:\d{1,30}(?:\.\d{0,30})?|\.\d{1,30}))(?:[eE]([+-]?\d{1,2})|([numkMGTPE]|[KMGTPE]i)?)")
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
    """The number a quantity stands for, as "8", "8000m", "1k", 8 or 0.5 do.

    Raises Refused naming the field when the value is no quantity.
    """
    if type(value) is str and value.isdecimal() and value.isascii() and len(value) <= 30:  # noqa: PLR2004
        return Decimal(value)  # the hot path: almost every request is a bare integer
    text = "" if isinstance(value, bool) else str(value)
    match = _QUANTITY.fullmatch(text)
    if match is None:
        raise Refused(f'{field}: "{text[:40]}" is no quantity; write a whole number of GPUs, such as "2"')
    number, exponent, suffix = match.groups()
    return Decimal(number) * (Decimal(10) ** int(exponent) if exponent else _SUFFIX[suffix])


def gpus(value: object, field: str) -> Decimal:
    """A request for an extended resource: a quantity that is whole and not negative, as Pod validation asks.

    Custom resources reach the webhook before any such validation, so "0.5" and "-1" do arrive.
    """
    number = quantity(value, field)
    if number < 0 or number != number.to_integral_value():
        raise Refused(f'{field}: "{value}" is not a whole number of GPUs; write "0", "1", "2", …')
    return number


def written(number: Decimal) -> str:
    """A number as a person writes it: "6", "0.125", never "6.000" or "1E+3"."""
    text = f"{number:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
