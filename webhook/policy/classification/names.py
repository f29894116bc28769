"""What names, images and variables hint at; never what the whole workload is. Pure functions of one text."""

from functools import lru_cache

from webhook.policy.classification.hints import REMEMBERED, Hint, telling
from webhook.policy.classification.patterns import MACHINERY_PATTERN, VARIABLE_PATTERNS
from webhook.policy.classification.vocabulary.image_words import IMAGE_WORDS
from webhook.policy.classification.vocabulary.name_words import ERRANDS, METHODS, NAME_WORDS
from webhook.policy.workloads.workload_types import WorkloadType

_NAMES = NAME_WORDS.keys() | ERRANDS
_NIM = "nim"
"""Their publisher's folder for servers, whatever the model is called after: nim/deepmind/alphafold2."""


@lru_cache(REMEMBERED)
def variable_hint(name: str) -> Hint | None:
    """By the whole name of an environment variable."""
    found = (Hint(kind, name) for kind, pattern in VARIABLE_PATTERNS.items() if pattern.fullmatch(name.lower()))
    return next(found, None)


@lru_cache(REMEMBERED)
def name_hint(name: str, *, ends: bool) -> Hint | None:
    """By the last word that tells. What ends is no server, whatever its name: it may be a server's benchmark."""
    words = list(telling(name.lower(), _NAMES))
    if any(word in ERRANDS or NAME_WORDS[word] is WorkloadType.BATCH for word in words):
        words = [word for word in words if word not in METHODS]
    for word in reversed(words):
        if word in ERRANDS:
            return Hint(WorkloadType.BATCH if ends else WorkloadType.SERVING, word)
        kind = NAME_WORDS.get(word)
        if kind and not (ends and kind is WorkloadType.SERVING):
            return Hint(kind, word)
    return None


@lru_cache(REMEMBERED)
def is_machinery(image: str) -> bool:
    """Whether it is a part of the cluster."""
    return MACHINERY_PATTERN.search(image.lower()) is not None


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
