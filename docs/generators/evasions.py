"""The table of docs/security.md with the answer to each attempt to circumvent gpu-tiers."""

from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path

import yaml

from generators.tables import code, table

ATTEMPTS = Path(__file__).resolve().parents[2] / "tests" / "apiserver" / "evasions.yaml"


def evasions() -> str:
    """Return a heading and a table for each group of attempts."""
    groups = yaml.safe_load(ATTEMPTS.read_text(encoding="utf-8"))
    return "\n\n".join(
        f"### {group['about']}\n\n{table(('attempt', 'answer'), list(_rows(group['attempts'])))}" for group in groups
    )


def _rows(attempts: Iterable[dict[str, str]]) -> Iterator[tuple[str, str]]:
    """Yield a row for each attempt. Attempts with one answer follow each other; only the first shows the answer."""
    found = list(attempts)
    answers = [attempt["answer"] for attempt in found]
    for answer, same in groupby(sorted(found, key=lambda each: answers.index(each["answer"])), lambda it: it["answer"]):
        for number, attempt in enumerate(same):
            is_sentence = "story" in attempt or answer.startswith("admitted: ")
            yield attempt["attempt"], "" if number else answer if is_sentence else code(answer)
