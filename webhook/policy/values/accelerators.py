"""Tells accelerators, parts of one and other devices apart by their names, from the table in accelerators.yaml."""

import functools
import re
from collections.abc import Mapping
from decimal import Decimal

import msgspec

from webhook.objects.data_files import data_file

_QUALIFIED = re.compile(r"[^/]{1,253}/[^/]{1,63}")
"""A resource's name, as far as validation of pods bounds it. Custom resources bring others: no pod is made of them, and
with many slashes in one the patterns of the table take minutes."""

VARIES, SAME, HUNDRED = Decimal(0), Decimal(1), Decimal(100)
"""How many of a resource make an accelerator: any amount is a part of one; each is one; a percentage."""


class AcceleratorNames(msgspec.Struct, frozen=True, rename="camel"):
    """The file; the comments in it explain each field."""

    domains: frozenset[str]
    with_network_cards: frozenset[str]
    words: str
    others: str
    models: str
    parts: str
    percentages: str
    schedulers: frozenset[str]
    units: Mapping[str, Decimal]
    drivers: frozenset[str]
    other_drivers: frozenset[str]


@functools.cache
def table() -> AcceleratorNames:
    return msgspec.convert(data_file(__name__, "accelerators.yaml"), AcceleratorNames)


def looks_like_accelerator(name: str) -> bool:
    """Tells whether a resource is called as accelerators are: by its domain, or by a word behind the slash."""
    if not _QUALIFIED.fullmatch(name):
        return False
    return (domain_of(name) in table().domains or _found(table().words, name)) and not _found(table().others, name)


def units_of(name: str) -> Decimal | None:
    """How many of a resource make an accelerator, if it may describe accelerators that another resource stands for.

    None for a resource that stands for accelerators by itself. The name must look like an accelerator's.
    """
    known = table().units.get(name)
    if known is not None:
        return known
    if _found(table().percentages, name):
        return HUNDRED
    if _found(table().parts, name):
        return VARIES
    beside_cards = domain_of(name) in table().with_network_cards and not _found(table().words, name)
    return SAME if beside_cards and not _found(table().models, name) else None


def may_be_a_card(name: str) -> bool:
    """Tells whether a resource that looks like an accelerator may be a network card of the same vendor."""
    return units_of(name) == SAME and name not in table().units


def domain_of(name: str) -> str:
    return name.partition("/")[0]


def family_of(name: str) -> str:
    """The domain whose accelerators a resource describes; "" where a scheduler describes those of any vendor."""
    domain = domain_of(name)
    return "" if domain in table().schedulers else domain


def is_accelerator_driver(name: str) -> bool:
    """Tells whether a driver of dynamic resource allocation is called as those of accelerators are."""
    return "gpu" in name or name in table().drivers


def _found(pattern: str, name: str) -> bool:
    return re.search(pattern, name) is not None  # which keeps what it compiled
