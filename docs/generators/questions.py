"""The table of docs/questions.md: what is said of an object in each state, from the file by which that is tested."""

from pathlib import Path

import yaml

from generators.tables import code, filled, table

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "questions.md"
STATES = ROOT / "tests" / "apiserver" / "states.yaml"


def questions() -> str:
    """The page with its table made anew."""
    rows = yaml.safe_load(STATES.read_text(encoding="utf-8"))
    cells = [(each["state"], code(_plain(each["why"])), code(_plain(each["explain"]))) for each in rows]
    return filled("states", table(("state", "why-pending", "explain"), cells), PAGE.read_text(encoding="utf-8"))


def _plain(pattern: str) -> str:
    """A table has two columns of a line in one, so what stands between them is no text."""
    first, between, rest = pattern.partition("…")
    return f"{first}: {rest}" if between and first and not first.endswith((" ", "/")) else pattern
