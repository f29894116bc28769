"""The values of YAML texts, as kubectl reads them. tests/apiserver/test_yaml.py asks kubectl for the same table."""

from typing import Any

import pytest

from webhook.config.yaml_text import NotYaml, Twice, placed_trees, trees

READ: dict[str, Any] = {
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "on", "On", "ON", "true", "True", "TRUE"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "off", "Off", "OFF", "false", "False", "FALSE"), False),
    **dict.fromkeys(("~", "null", "Null", "NULL", ""), None),
    **{
        each: each
        for each in ("tRue", "nUll", "yES", "oN", "=", "<<", ".", "+", "1e", "e1", "_1", "inf", "nan", "100m")
    },
    **{
        each: each
        for each in ("1:30", "1:30:00", "-1:30", "190:20:30.15", "12:30:45.5", "1.2.3", "1,000", "0b2", "0o8")
    },
    **{each: each for each in ("2026-02-28", "2026-02-30", "2001-12-15 2:59:43", "2001-12-14t21:59:43.10-05:00")},
    **{each: each for each in ("0xZZ", "0x", "0b", "0o", "0e", ".e1", "1.5e400", "0xFFFFFFFFFFFFFFFFFF")},
    "0777": 511,
    "0o777": 511,
    "0O17": 15,
    "+0o7": 7,
    "-0o7": -7,
    "0_7": 7,
    "0o17_7": 127,
    "007": 7,
    "-012": -10,
    "0x1F": 31,
    "0X1F": 31,
    "-0x1f": -31,
    "0b101": 5,
    "0B1": 1,
    "-0b1": -1,
    "00": 0,
    "-0": 0,
    "+12": 12,
    "08": 8,
    "09": 9,
    "1_000": 1000,
    "1__0": 10,
    "1_": 1,
    "1e3": 1000,
    "1E+03": 1000,
    "1.e3": 1000,
    "1.0": 1,
    "5.": 5,
    "-.5": -0.5,
    "+.5": 0.5,
    ".5": 0.5,
    ".1e2": 10,
    "1e-3": 0.001,
    "1_0.5": 10.5,
    "12e03": 12000,
    "0e0": 0,
    "0.0": 0,
    "123456789012345678901234567890": 1.2345678901234568e29,
    "18446744073709551615": 2.0**64,
    '"y"': "y",
    "'0777'": "0777",
    "!!str y": "y",
    "!!str 1": "1",
    '!!int "3"': 3,
    "!!float 3": 3,
    '!!bool "yes"': True,
    "!!binary aGk=": "hi",
    "!foo bar": "bar",
    "!foo {a: 1}": {"a": 1},
    "!foo [n]": [False],
    "!!set {a}": {"a": None},
    "!!omap [a: 1]": [{"a": 1}],
    "!!timestamp 2001-01-01": "2001-01-01",
    "[1, y]": [1, True],
    "{1: a, y: b, 1.5: c, 0x10: d, 1e3: f, 2026-01-01: g}": {
        "1": "a",
        "true": "b",
        "1.5": "c",
        "16": "d",
        "1000": "f",
        "2026-01-01": "g",
    },
    "{<<: {a: 2, b: 2}, a: 1}": {"a": 1, "b": 2},
    "{a: 1, <<: {a: 2, b: 2}}": {"a": 2, "b": 2},
    "{<<: [{a: 2, b: 2}, {a: 3, c: 3}]}": {"a": 2, "b": 2, "c": 3},
    "{<<: {a: 2}, <<: {a: 3}}": {"a": 3},
    "{'<<': {a: 2}}": {"<<": {"a": 2}},
}
REFUSED = {
    ".inf": '".inf" is not a number of JSON; if it is text, write it in quotes',
    "-.INF": '"-.INF" is not a number of JSON; if it is text, write it in quotes',
    ".NaN": '".NaN" is not a number of JSON; if it is text, write it in quotes',
    "!!int 1:30": '"1:30" is not a number; if it is text, write it in quotes',
    "!!null x": '"x" is not a value; if it is text, write it in quotes',
    "{~: a}": "found null as a key, while constructing a mapping from line 1",
    "{[a]: b}": "found a sequence as a key, while constructing a mapping from line 1",
    "{<<: 3}": (
        "expected a mapping or list of mappings for merging, but found scalar, while constructing a mapping from line 1"
    ),
}


@pytest.mark.parametrize("text", READ)
def test_a_value_is_what_kubectl_makes_of_it(text: str) -> None:
    ((found,),) = (list(tree.values()) for tree in trees(f"v: {text}\n") if isinstance(tree, dict))
    assert (found, type(found)) == (READ[text], type(READ[text]))


@pytest.mark.parametrize("text", REFUSED)
def test_what_kubectl_refuses_is_refused_with_its_line(text: str) -> None:
    with pytest.raises(NotYaml) as refused:
        trees(f"v: {text}\n")
    assert str(refused.value) == f"not YAML: line 1: {REFUSED[text]}"


def test_a_key_that_is_written_twice_is_reported_and_a_merge_is_none() -> None:
    twice: list[Twice] = []
    placed_trees("{a: 1, <<: {a: 2}, <<: {b: 1}, a: 3}", twice)
    assert twice == [Twice("a", 1)]


@pytest.mark.parametrize("text", ["\ufeffv: 1", "v: 1\n---\n---\n# no more\n", "v:\t1", "v: 1\n...\n"])
def test_marks_around_a_document_say_nothing(text: str) -> None:
    assert [tree for tree in trees(text) if tree is not None] == [{"v": 1}]
