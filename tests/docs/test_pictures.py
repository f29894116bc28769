"""The pictures of the page and of terminals: small, shown somewhere, and complete in themselves."""

import re
from pathlib import Path

import pytest

from demonstration.pictures import end_of, settled, settled_times
from demonstration.terminal import Said, terminal

from .markdown import ROOT, pages

PICTURES = sorted(file for file in (ROOT / "docs" / "pictures").iterdir() if file.suffix in {".png", ".svg"})
MOST_BYTES = 200_000


@pytest.mark.parametrize("file", PICTURES, ids=lambda file: file.name)
def test_a_picture_is_small_and_is_on_a_page(file: Path) -> None:
    assert file.stat().st_size < MOST_BYTES
    shown = {(page.path.parent / link).resolve() for page in pages() for link in page.links() if "pictures/" in link}
    assert file in shown


@pytest.mark.parametrize("file", [each for each in PICTURES if each.suffix == ".svg"], ids=lambda file: file.name)
def test_a_drawing_fetches_nothing(file: Path) -> None:
    text = file.read_text()
    assert not re.search(r"url\((?!#)|href=|<script|@import", text)


def test_a_terminal_is_drawn_the_same_each_time_and_shows_colours_as_colours() -> None:
    said = [Said("kubectl apply -f pod.yaml", "\x1b[31mError\x1b[0m from server: " + "x" * 200 + "\n…\n")]
    drawn = terminal("kubectl", said)
    assert drawn == terminal("kubectl", said)
    assert "\x1b" not in drawn
    assert "kubectl&#160;apply&#160;-f&#160;pod.yaml" in drawn


def test_times_and_made_up_names_do_not_change_a_picture() -> None:
    def page(seconds: int, suffix: str) -> str:
        times = [f"2026-11-22 20:00:{second + seconds:02} UTC" for second in (30, 27, 26, 12)]
        return f"{times[0]} vllm-chat-5f7-{suffix} {times[1]} {times[2]} {times[3]}"

    assert settled(page(0, "abcde")) == settled(page(9, "fghij"))
    within_a_step = settled_times(f"2026-11-22 20:00:0{second} UTC" for second in (5, 4, 1))
    assert list(within_a_step.values()) == [
        "2026-11-20 09:41:00 UTC", "2026-11-20 09:41:00 UTC", "2026-11-20 09:40:13 UTC",
    ]  # fmt: skip
    assert end_of('<a><header>b</header>c<h2 id="verdicts">d') == '<a><h2 id="verdicts">d'
