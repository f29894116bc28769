"""Texts that are no policy, though PyYAML has no error of its own for some of them."""

import pytest

from webhook.config.errors import ConfigError
from webhook.config.load import parse

TEXTS = ["a: 2026-02-30", "a: !!bool maybe", f"a: {'9' * 6000}", "a: [", "a: 1\na: 2", "[" * 5000]


@pytest.mark.parametrize("text", TEXTS, ids=lambda text: text[:12])
def test_a_text_that_is_no_policy_is_said_to_be_none(text: str) -> None:
    with pytest.raises(ConfigError):
        parse(text, "policy.yaml")
