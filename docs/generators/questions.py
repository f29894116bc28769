"""Fills the table of docs/questions.md with the answers in each state, from the file of their tests."""

from pathlib import Path

import yaml

from generators.tables import code, filled, table

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "questions.md"
STATES = ROOT / "tests" / "apiserver" / "states.yaml"


def questions() -> str:
    """Return the page with a new table."""
    rows = yaml.safe_load(STATES.read_text(encoding="utf-8"))
    cells = [(each["state"], code(_plain(each["why"])), code(_plain(each["explain"]))) for each in rows]
    return filled("states", table(("state", "why-pending", "explain"), cells), PAGE.read_text(encoding="utf-8"))


def _plain(pattern: str) -> str:
    """Return a pattern as text. Where it spans two columns of a line, a colon separates them."""
    first, between, rest = pattern.partition("…")
    return f"{first}: {rest}" if between and first and not first.endswith((" ", "/")) else pattern
