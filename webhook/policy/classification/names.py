"""Guesses from names: of the pod and its owners, of a kind that no row describes, of environment variables."""

from functools import lru_cache

from webhook.policy.classification.case import Case
from webhook.policy.classification.hints import REMEMBERED, Hint, telling
from webhook.policy.classification.patterns import VARIABLE_PATTERNS
from webhook.policy.classification.vocabulary.name_words import METHODS, NAME_WORDS, ONE_OFF_TASKS
from webhook.policy.workloads.workload_types import WorkloadType

_NAMES = NAME_WORDS.keys() | ONE_OFF_TASKS


def by_name(case: Case) -> Hint | None:
    """The first name that tells."""
    told = (name_hint(name, ends=case.ends) for name in case.names())
    return next(filter(None, told), None)


def by_one_off_task(case: Case) -> Hint | None:
    """A name that ends in an evaluation, a benchmark, a test. The word batch doesn't count: a batch may be anything."""
    found = by_name(case)
    return found if found and found.type is WorkloadType.BATCH and found.words != "batch" else None


def by_kind(case: Case) -> Hint | None:
    """The name of an unknown kind, such as TrainJob or LLMService, tells more than its image."""
    kind = case.unknown_kind()
    return name_hint(kind, ends=case.ends) if kind else None


def by_variable(case: Case) -> Hint | None:
    """The first variable whose name tells."""
    told = (variable_hint(name) for name in case.variables())
    return next((hint for hint in told if hint and not (case.ends and hint.type is WorkloadType.SERVING)), None)


@lru_cache(REMEMBERED)
def variable_hint(name: str) -> Hint | None:
    """By the whole name of an environment variable."""
    patterns = VARIABLE_PATTERNS.items()
    found = (workload_type for workload_type, pattern in patterns if pattern.fullmatch(name.lower()))
    return next((Hint(workload_type, name) for workload_type in found), None)


@lru_cache(REMEMBERED)
def name_hint(name: str, *, ends: bool) -> Hint | None:
    """By the last word that tells. What ends is no server, whatever its name: it may be a server's benchmark."""
    for word in reversed(_words(name)):
        if word in ONE_OFF_TASKS:
            return Hint(WorkloadType.BATCH if ends else WorkloadType.SERVING, word)
        workload_type = NAME_WORDS.get(word)
        if workload_type and not (ends and workload_type is WorkloadType.SERVING):
            return Hint(workload_type, word)
    return None


def _words(name: str) -> list[str]:
    """The words that tell; beside a one-off task, the method by which something was trained tells nothing."""
    words = list(telling(name.lower(), _NAMES))
    if any(word in ONE_OFF_TASKS or NAME_WORDS[word] is WorkloadType.BATCH for word in words):
        return [word for word in words if word not in METHODS]
    return words
