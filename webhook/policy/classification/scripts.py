"""What a script does, by its name."""

import re

from webhook.policy.classification.hints import telling
from webhook.policy.classification.vocabulary.name_words import EXERCISES, ONE_OFF_TASKS, ONE_OFF_VERBS, SCRIPT_WORDS
from webhook.policy.workloads.workload_types import WorkloadType

_SCRIPTS = SCRIPT_WORDS.keys() | ONE_OFF_TASKS
_LAST_STEPS = frozenset(["and-train", "and-finetune"])
_TESTS = frozenset(["test", "tests"])


def script_type(name: str, *, ends: bool) -> WorkloadType | None:
    """By the first word that tells; a server of training (serve_trainer.py) is still a server."""
    words = _words(name)
    if not words:
        return WorkloadType.TRAINING if any(True for _ in telling(name, EXERCISES)) else None
    if not _LAST_STEPS.isdisjoint(words):
        return WorkloadType.TRAINING  # prepare_and_train.py
    told = [SCRIPT_WORDS[word] for word in words if word in SCRIPT_WORDS]
    trains = told[:1] == [WorkloadType.TRAINING]
    if not told or (trains and words[0] in ONE_OFF_VERBS):
        return WorkloadType.BATCH if ends else WorkloadType.SERVING
    if WorkloadType.SERVING in told and (trains or words[0] in ONE_OFF_TASKS):
        return WorkloadType.SERVING
    return told[0]


def _words(name: str) -> list[str]:
    """The words of a module that tell, else those of its package. Tests of something are that: test_train.py trains."""
    package, _, module = name.rpartition(".")
    words = list(telling(module, _SCRIPTS)) or [word for word in telling(package, _SCRIPTS) if _is_an_aim(word)]
    return [word for word in words if word not in _TESTS] or words


def _is_an_aim(word: str) -> bool:
    """Whether a package may be called after what its modules do: `app.consumer` is no app, `src.train.main` trains."""
    return SCRIPT_WORDS.get(word) is not WorkloadType.SERVING


def after_its_folder(script: re.Match[str]) -> str:
    """`mnist/main.py` is called after its folder, if that is called after training; `data/main.py` is anything."""
    folder, name = script.groups()
    trains = any(SCRIPT_WORDS.get(word) is WorkloadType.TRAINING for word in telling(folder, SCRIPT_WORDS))
    return f"{folder}.{name}" if trains or any(True for _ in telling(folder, EXERCISES)) else script.group(0)
