"""A label or an annotation that was to be one of ours, and isn't."""

import re
from pathlib import Path

import pytest

from webhook.policy.unknown_keys import KNOWN_KEYS, unknown_keys

ROOT = Path(__file__).parents[3]
_KEY = re.compile(r"(?<![a-z.-])gpu-tiers\.dev/(?!v1)[a-z][a-z-]*[a-z]")
_NO_KEYS_OF_OBJECTS = {"gpu-tiers.dev/webhook"}
"""What bears an event."""


@pytest.mark.parametrize(
    ("key", "likely"),
    [
        ("teir", "gpu-tiers.dev/tier"),
        ("Tier", "gpu-tiers.dev/tier"),
        ("checkpoint-timout", "gpu-tiers.dev/checkpoint-timeout"),
        ("checkpoint-comand", "gpu-tiers.dev/checkpoint-command"),
        ("team", "gpu-tiers.dev/tier or gpu-tiers.dev/checkpoint"),
    ],
)
def test_what_was_meant_is_told(key: str, likely: str) -> None:
    key = f"gpu-tiers.dev/{key}"
    assert list(unknown_keys([{key: "x"}, {key: "y"}])) == [
        f"[unknown-key] gpu-tiers knows no {key}; did you mean {likely}?"
    ]


def test_keys_of_others_are_theirs() -> None:
    assert list(unknown_keys([{"app": "web", "example.com/teir": "gold", "localcluster.gpu-tiers.dev/x": "1"}])) == []


def test_every_key_that_we_read_or_write_is_known() -> None:
    files = [each for folder in ("webhook", "charts") for each in (ROOT / folder).rglob("*") if each.is_file()]
    texts = [each.read_text() for each in files if each.suffix in {".py", ".yaml", ".tpl", ".txt"}]
    found = {key for text in texts for key in _KEY.findall(text)} - _NO_KEYS_OF_OBJECTS
    assert found >= {"gpu-tiers.dev/tier", "gpu-tiers.dev/mode", "gpu-tiers.dev/dry-run-owner"}
    assert found <= KNOWN_KEYS
