"""CEL selectors of any content: only what one plainly selects is read."""

from hypothesis import given
from hypothesis import strategies as st

from webhook.policy.workloads.claims import drivers_in, profile_in

PROFILE = "device.attributes['gpu.nvidia.com'].profile == '1g.10gb'"
DRIVER = "device.driver == 'dra.net'"
TERMS = (
    PROFILE,
    DRIVER,
    "true",
    "device.attributes['a.b'].c.startsWith('x && y')",
    '"&&" != ""',
    "[1, 2].exists(n, n > 1)",
)
PIECES = st.sampled_from([*TERMS, " && ", " || ", "!", "(", ")", "'", '"', "\\", "?", ":", "//", "\n", "'''", "{", "}"])


@given(st.lists(st.sampled_from(TERMS), min_size=1, max_size=5))
def test_a_list_of_terms_tells_what_stands_in_it(terms: list[str]) -> None:
    expression = " && ".join(terms)
    assert profile_in([expression]) == ("1g.10gb" if PROFILE in terms else "")
    assert drivers_in([expression]) == ("dra.net",) * terms.count(DRIVER)
    for hiding in (f"!({expression})", f"({expression}) || true", f"true ? {expression} : false", f"f({expression})"):
        assert (profile_in([hiding]), drivers_in([hiding])) == ("", ())


@given(st.lists(PIECES, max_size=12).map("".join) | st.text())
def test_nothing_is_said_of_what_is_more_than_a_list(expression: str) -> None:
    found = [*drivers_in([expression]), *filter(None, [profile_in([expression])])]
    assert not found or not any(sign in expression for sign in ("||", "?", "\\", "//", "'''"))
