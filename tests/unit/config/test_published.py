"""The leader publishes the active policy, and commands choose the policy that answers."""

import pytest
from msgspec.structs import replace

from webhook.cli.cluster.installed import which_answers
from webhook.config.published import LONGEST_TEXT, InstalledPolicy, Published, digest_of

OLD, NEW = "preset: four-tier", "preset: three-tier"
PUBLISHED = Published(OLD, digest_of(OLD), "2026-11-21T09:00:00Z")
TAKEN = InstalledPolicy("gpu-tiers/gpu-tiers", OLD, PUBLISHED)
CHANGED = replace(TAKEN, file=NEW)
BROKEN = replace(CHANGED, published=replace(PUBLISHED, problem="teirs: there is no such field"))


def stored(published: Published) -> Published | None:
    """Return the state as it is read back: a merge patch leaves out what is None."""
    return Published.read({"data": {key: value for key, value in published.data().items() if value is not None}})


def test_it_is_read_as_it_was_written() -> None:
    assert stored(PUBLISHED) == PUBLISHED
    assert Published.read({"metadata": {"name": "gpu-tiers-active"}}) is None, "as the chart makes it"


def test_of_a_text_that_no_config_map_takes_the_digest_is_left() -> None:
    long = Published("x" * (LONGEST_TEXT + 1), "a1b2", "2026-11-21T09:00:00Z", "broken" * 4000)
    sentence = stored(long)
    assert sentence is not None
    assert (sentence.text, sentence.digest, len(sentence.problem)) == ("", "a1b2", 4000)
    assert sum(len(each or "") for each in long.data().values()) < 1 << 20


@pytest.mark.parametrize(
    ("found", "text", "sentence"),
    [
        (
            BROKEN,
            OLD,
            "was not taken: teirs: there is no such field. This is answered from the active policy since 2026-11-21",
        ),
        (
            replace(BROKEN, published=replace(PUBLISHED, problem="no such field; did you mean tiers?")),
            OLD,
            "did you mean tiers? This is answered from the active policy since 2026-11-21",
        ),
        (CHANGED, OLD, "was changed, and is not active yet. This is answered from the active policy since 2026-11"),
        (
            replace(TAKEN, published=None),
            OLD,
            "no replica has reported which policy is active, so this is answered from",
        ),
        (
            replace(TAKEN, published=None, unread=True),
            OLD,
            "you may not get ConfigMap gpu-tiers/gpu-tiers-active, so",
        ),
        (
            replace(BROKEN, published=replace(PUBLISHED, text="", problem="teirs: there is no such field")),
            NEW,
            "The active policy is too long to be published, so this is answered from the file",
        ),
        (
            replace(TAKEN, published=replace(PUBLISHED, text="", problem="a class has another value")),
            OLD,
            "is active, but not as it should be: a class has another value",
        ),
        (
            replace(TAKEN, file="", gone=True),
            OLD,
            "ConfigMap gpu-tiers/gpu-tiers does not exist. This is answered from the active policy since 2026-11-21",
        ),
    ],
    ids=[
        "broken",
        "broken, with a hint",
        "changed",
        "nobody tells",
        "no right",
        "too long and broken",
        "too long, and the same",
        "deleted",
    ],
)
def test_which_policy_answers_and_how_that_is_said(found: InstalledPolicy, text: str, sentence: str) -> None:
    assert (found.taken, found.text) == (False, text)
    assert sentence in which_answers(found)


def test_of_an_active_file_nothing_is_said() -> None:
    assert (TAKEN.taken, TAKEN.text) == (True, OLD)
    assert replace(TAKEN, published=replace(PUBLISHED, text="")).taken, "the digest is enough"
