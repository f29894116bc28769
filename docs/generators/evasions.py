"""The table of docs/security.md that says how each attempt to get round gpu-tiers is answered."""

from pathlib import Path

import yaml

from generators.tables import code, table

ATTEMPTS = Path(__file__).resolve().parents[2] / "tests" / "apiserver" / "evasions.yaml"


def evasions() -> str:
    """A table for each group of attempts."""
    groups = yaml.safe_load(ATTEMPTS.read_text(encoding="utf-8"))
    return "\n\n".join(
        f"### {group['about']}\n\n{table(('attempt', 'answer'), [_row(each) for each in group['attempts']])}"
        for group in groups
    )


def _row(attempt: dict[str, str]) -> tuple[str, str]:
    told = "story" in attempt or attempt["answer"].startswith("let in: ")
    return attempt["attempt"], attempt["answer"] if told else code(attempt["answer"])
