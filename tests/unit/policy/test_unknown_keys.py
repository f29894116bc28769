"""A label or an annotation that was to be one of ours, and isn't."""

import re
from pathlib import Path

import pytest

from tests.builders.words import words
from webhook.objects.pods import Metadata
from webhook.policy.assignment.request import TIER_LABEL
from webhook.policy.checkpoint.hook_plan import CHECKPOINT
from webhook.policy.metadata_keys import KNOWN_KEYS, unknown_keys

ROOT = Path(__file__).parents[3]
_KEY = re.compile(r"(?<![a-z.-])gpu-tiers\.dev/(?!v1)[a-z][a-z-]*[a-z]")
_NO_KEYS_OF_USERS = {"gpu-tiers.dev/webhook", "gpu-tiers.dev/settled", "gpu-tiers.dev/leader-address"}
_NO_KEYS_OF_USERS |= {"gpu-tiers.dev/reserved", "gpu-tiers.dev/reservation", "gpu-tiers.dev/failed-preemptions"}
"""What events bear, our Lease, and nodes that are reserved."""


@pytest.mark.parametrize(
    ("key", "likely"),
    [
        ("teir", "gpu-tiers.dev/tier"),
        ("Tier", "gpu-tiers.dev/tier"),
        ("checkpoint-timout", "gpu-tiers.dev/checkpoint-timeout"),
        ("checkpoint-comand", "gpu-tiers.dev/checkpoint-command"),
        ("team", "gpu-tiers.dev/tier"),
    ],
)
def test_what_was_meant_is_reported(key: str, likely: str) -> None:
    key = f"gpu-tiers.dev/{key}"
    said = [*words(unknown_keys([Metadata(labels={key: "x"}), Metadata(annotations={key: "y"})]))]
    assert said == [f"[unknown-key] {key} is unknown and ignored; did you mean {likely}?"]


@pytest.mark.parametrize("key", ["gpu-tier.dev/tier", "gputiers.dev/tier", "gpu-tiers.io/teir"])
def test_a_domain_that_is_nearly_ours(key: str) -> None:
    assert [*words(unknown_keys([Metadata(labels={key: "x"})]))] == [
        f"[unknown-key] {key} is unknown and ignored; did you mean gpu-tiers.dev/tier?"
    ]


def test_a_label_among_the_annotations_and_the_other_way_round() -> None:
    swapped = Metadata(labels={CHECKPOINT: "file"}, annotations={TIER_LABEL: "gpu-batch"})
    ignored = "is unknown and ignored; did you mean"
    assert [*words(unknown_keys([swapped]))] == [
        f"[unknown-key] label gpu-tiers.dev/checkpoint {ignored} the annotation of that name?",
        f"[unknown-key] annotation gpu-tiers.dev/tier {ignored} the label of that name?",
    ]


def test_of_thousands_the_first_few_are_reported() -> None:
    assert len(list(unknown_keys([Metadata(labels={f"gpu-tiers.dev/teir-{n}": "x" for n in range(5000)})]))) == 3


def test_keys_of_others_are_theirs() -> None:
    labels = {"app": "web", "example.com/teir": "gold", "localcluster.gpu-tiers.dev/x": "1", "gpu-tier.dev/team": "a"}
    assert list(unknown_keys([Metadata(labels=labels)])) == []


def test_every_key_that_we_read_or_write_is_known() -> None:
    files = [each for folder in ("webhook", "charts") for each in (ROOT / folder).rglob("*") if each.is_file()]
    texts = [each.read_text() for each in files if each.suffix in {".py", ".yaml", ".tpl", ".txt"}]
    found = {key for text in texts for key in _KEY.findall(text)} - _NO_KEYS_OF_USERS
    assert found >= {"gpu-tiers.dev/tier", "gpu-tiers.dev/mode"}
    assert found <= KNOWN_KEYS
