"""The answers on the pages are those that the commands give on a real cluster."""

import pytest

from .markdown import ROOT, page

ANSWERS = ROOT / "tests" / "apiserver" / "answers"
SHOWN = {
    "docs/questions.md": ("why-notebook", "why-refused", "why-evicted"),
    "docs/testing-policies.md": ("policy-diff-cluster",),
}


@pytest.mark.parametrize(("where", "answer"), [(where, each) for where, some in SHOWN.items() for each in some])
def test_the_page_shows_what_the_command_prints(where: str, answer: str) -> None:
    shown = [block.text.partition("\n")[2] for block in page(where).blocks("console")]
    assert (ANSWERS / f"{answer}.txt").read_text(encoding="utf-8") in shown
