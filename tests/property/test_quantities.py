"""A quantity is exact, or refused."""

from decimal import Decimal
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from tests.property.anything import JSON, refusal_of
from webhook.objects.quantities import quantity, written

SUFFIXES = {
    "": Fraction(1),
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 1000),
    **{letter: Fraction(1000) ** power for power, letter in enumerate("kMGTPE", start=1)},
    **{f"{letter}i": Fraction(1024) ** power for power, letter in enumerate("KMGTPE", start=1)},
}


@given(
    sign=st.sampled_from(["", "+", "-"]),
    whole=st.integers(0, 10**29),
    part=st.text("0123456789", max_size=30),
    suffix=st.sampled_from(sorted(SUFFIXES)),
)
def test_a_quantity_is_exact(sign: str, whole: int, part: str, suffix: str) -> None:
    text = f"{sign}{whole}.{part}{suffix}"
    number = Fraction(int(f"{whole}{part}"), 10 ** len(part)) * SUFFIXES[suffix]
    assert Fraction(quantity(text, "x")) == (-number if sign == "-" else number)


@given(whole=st.integers(0, 10**29), exponent=st.integers(-99, 99), letter=st.sampled_from("eE"))
def test_a_quantity_with_an_exponent_is_exact(whole: int, exponent: int, letter: str) -> None:
    assert Fraction(quantity(f"{whole}{letter}{exponent}", "x")) == Fraction(whole) * Fraction(10) ** exponent


@given(JSON | st.integers(-(10**400), 10**400) | st.from_regex(r"[-+0-9.eEkKMGTPimnu]{0,12}"))
def test_a_quantity_is_a_number_or_refused(value: object) -> None:
    sentence = refusal_of(lambda: quantity(value, "field"))
    if sentence is None:
        assert quantity(value, "field").is_finite()
    else:
        assert sentence.startswith("field: ")
        assert len(sentence) < 160


@given(st.decimals(0, 10**6, places=6))
def test_a_number_reads_back_as_it_was_written(number: Decimal) -> None:
    assert quantity(written(number), "x") == number
