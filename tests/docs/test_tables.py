"""Tables stay readable: a line that is too long belongs in a list or on a page of its own."""

from .markdown import pages

LONGEST = 400


def test_no_line_of_a_table_is_too_long() -> None:
    lines = [(str(page), line) for page in pages() for line in page.prose.splitlines() if line.startswith("|")]
    assert len(lines) > 300
    assert [(page, line[:80]) for page, line in lines if len(line) > LONGEST] == []
