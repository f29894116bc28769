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
    cells = [(each["state"], code(each["why"])) for each in rows]
    return filled("states", table(("state", "why-pending"), cells), PAGE.read_text(encoding="utf-8"))
