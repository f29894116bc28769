"""The answers on the page are those that the commands give on a real cluster."""

from pathlib import Path

import pytest

from .markdown import ROOT, page

ANSWERS = ROOT / "tests" / "apiserver" / "answers"
SHOWN = ("why-notebook", "why-refused", "why-evicted", "explain-job", "explain-before")


@pytest.mark.parametrize("answer", [ANSWERS / f"{each}.txt" for each in SHOWN], ids=lambda answer: answer.stem)
def test_the_page_shows_what_the_command_prints(answer: Path) -> None:
    shown = [block.text.partition("\n")[2] for block in page("docs/questions.md").blocks("console")]
    assert answer.read_text(encoding="utf-8") in shown
