"""What is said of a value that is none of those that a field takes."""

from collections.abc import Mapping
from typing import Literal

import pytest

from tests.builders.words import sentence
from webhook.objects.refusal import Refused
from webhook.objects.view import View, view


class Expression(View, frozen=True):
    operator: Literal["In", "NotIn"] = "In"


class Selector(View, frozen=True):
    match_expressions: tuple[Expression, ...] | None = None
    policy: Mapping[str, Literal["Never", "Always"]] = {}


@pytest.mark.parametrize(
    ("tree", "said"),
    [
        (
            {"matchExpressions": [{"operator": "Is"}]},
            "matchExpressions[0].operator: unknown value 'Is'; write one of In, NotIn",
        ),
        ({"policy": {"a": "Soon"}}, "policy[...]: unknown value 'Soon'; write one of Always, Never"),
        ({"policy": {"a": 3}}, "policy[...]: expected text, got a whole number; write it in quotes"),
    ],
)
def test_the_values_that_a_field_takes_are_named(tree: dict[str, object], said: str) -> None:
    with pytest.raises(Refused) as refused:
        view(tree, Selector)
    assert sentence(refused.value.refusal).startswith(said)
