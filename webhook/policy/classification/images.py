"""Guesses from images: the words of their paths and tags."""

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache

from webhook.policy.classification.case import Case
from webhook.policy.classification.hints import REMEMBERED, Hint, telling
from webhook.policy.classification.names import by_name
from webhook.policy.classification.patterns import SYSTEM_IMAGE_PATTERN
from webhook.policy.classification.ports import by_listening
from webhook.policy.classification.vocabulary.image_words import IMAGE_WORDS
from webhook.policy.classification.vocabulary.name_words import ONE_OFF_TASKS
from webhook.policy.workloads.workload_types import WorkloadType

TRAINING, SERVING, BATCH, INTERACTIVE = WorkloadType

IN_AN_IMAGE = (INTERACTIVE, BATCH, SERVING, TRAINING)
"""Of several words of an image: training last, since a person may wait for what else it may be."""

_NIM = "nim"
"""Their publisher's folder for servers, whatever the model is called after: nim/deepmind/alphafold2."""


def by_image(case: Case) -> Hint | None:
    """The first type, in the order above, among the words of the images. An image made for training may also serve."""
    packed = _packed(case, but=SERVING if case.ends else None)
    hint = min(packed, key=lambda hint: IN_AN_IMAGE.index(hint.type), default=None)
    trained = hint is not None and hint.type is TRAINING  # the last of the order: no other word tells
    return None if trained and not case.ends and _answers(case) else hint


def by_server(case: Case) -> Hint | None:
    """Where both a name and an image say that it serves, read as for a workload that doesn't end."""
    named = by_name(replace(case, ends=False))
    if named is None or named.type is not SERVING or named.words in ONE_OFF_TASKS:
        return None
    return named if any(hint.type is SERVING for hint in _packed(case)) else None


def _packed(case: Case, *, but: WorkloadType | None = None) -> Iterator[Hint]:
    for image in case.images():
        yield from (hint for hint in image_hints(image) if hint.type is not but)


def _answers(case: Case) -> bool:
    """Whether it listens, and no name says that it trains."""
    named = by_name(case)
    return by_listening(case) is not None and (named is None or named.type is not TRAINING)


@lru_cache(REMEMBERED)
def is_system_image(image: str) -> bool:
    """Whether it is a part of the cluster."""
    return SYSTEM_IMAGE_PATTERN.search(image.lower()) is not None


@lru_cache(REMEMBERED)
def image_hints(image: str) -> tuple[Hint, ...]:
    """By words of the image's path and tag."""
    path = image.partition("@")[0].lower()
    host, slash, rest = path.partition("/")
    if slash and ("." in host or ":" in host):
        path = rest
    path, _, tag = path.partition(":")
    words = list(telling(path, IMAGE_WORDS)) or list(telling(tag, IMAGE_WORDS))  # tags list what is built in as well
    if words[:1] == [_NIM]:
        words = [_NIM]
    return tuple(Hint(IMAGE_WORDS[word], word) for word in words)
