"""The picture of the preemptions: all that happened is named, and nothing is written over anything else."""

from itertools import combinations
from xml.etree import ElementTree as ET

import pytest
from pictures.preemption import picture

from demonstration.figures import Figures, Measured, Times, read

from .markdown import ROOT

SVG = "{http://www.w3.org/2000/svg}"
STORED = read(ROOT / "docs" / "pictures" / "preemption-timeline.json")
AT_ONCE = Times(hook=0.1, saved=0.1, stored=0.1, sigterm=0.2, gone=0.2, running=0.3, ended=5.3, resumed=10.0)
SPREAD = Times(hook=0.6, saved=70, stored=90, sigterm=71, gone=99.8, running=101.2, ended=106, resumed=110)
NOTHING_SAVED = Times(hook=None, saved=None, stored=None, sigterm=None, gone=30.1, running=31.9, ended=37, resumed=41)

USUAL = Measured(
    "v1.37.1",
    {
        "a": Figures(50, 300, True, Times(None, None, 25.04, 0.16, 30.18, 31.32, 36.75, 40.97)),
        "b": Figures(0, 59, False, Times(0.63, 0.71, 0.71, 1.68, 1.75, 3.03, 8.28, 12.65)),
        "c": Figures(35, 400, True, Times(0.34, 0.49, 36.66, 1.44, 40.45, 41.39, 46.67, 51.0)),
    },
)
"""What such runs come out with; in (b) five things happen within three seconds."""


def cases(times: Times, *, lost: int, killed: bool) -> Measured:
    figures = Figures(steps_lost=lost, resumed_at=12345, killed=killed, times=times)
    return Measured("v1.37.1", dict.fromkeys("abcdefg", figures))


SHAPES = {
    "kept": STORED,
    "usual": USUAL,
    "at once": cases(AT_ONCE, lost=0, killed=False),
    "far apart": cases(SPREAD, lost=98, killed=True),
    "nothing saved": cases(NOTHING_SAVED, lost=350, killed=True),
}


def parsed(measured: Measured) -> ET.Element:
    return ET.fromstring(picture(measured))  # noqa: S314 - our own


def test_what_is_drawn_in_the_table_only_takes_no_room() -> None:
    all_of_them = cases(SPREAD, lost=98, killed=True)
    drawn = {letter: all_of_them.cases[letter] for letter in "abcde"}
    assert picture(all_of_them) == picture(Measured("v1.37.1", drawn))


def words(within: ET.Element) -> str:
    return "\n".join(within.itertext())


@pytest.mark.parametrize("measured", SHAPES.values(), ids=SHAPES.keys())
def test_no_label_lies_on_another_or_on_a_stem_of_another(measured: Measured) -> None:
    image = parsed(measured)
    width, height = map(float, image.attrib["viewBox"].split()[2:])
    labels = [(number(event, "rect", "x", "y", "width", "height"), event) for event in image.iter(f"{SVG}g")]
    for (x, y, wide, high), event in labels:
        assert x > 0
        assert x + wide < width
        assert 0 < y < height
        for other in (each for _, each in labels if each is not event):
            stem, top, foot = number(other, "line", "x1", "y1", "y2")
            assert not (x < stem < x + wide and top < y + high and y < foot), (words(event), words(other))
    for ((x, y, wide, high), one), ((x2, y2, wide2, high2), two) in combinations(labels, 2):
        assert x + wide <= x2 or x2 + wide2 <= x or y + high <= y2 or y2 + high2 <= y, (words(one), words(two))


def number(within: ET.Element, shape: str, *names: str) -> list[float]:
    found = within.find(f"{SVG}{shape}")
    assert found is not None
    return [float(found.attrib[name]) for name in names]


def test_every_moment_is_named_in_its_order() -> None:
    named = [words(event).strip().split("\N{EN SPACE}") for event in parsed(USUAL).iter(f"{SVG}g")]
    assert named == [
        ["0.0 s", "critical pod asks for the GPUs"],
        ["0.2 s", "SIGTERM, ignored"],
        ["25.0 s", "last checkpoint, step 300"],
        ["30.2 s", "killed at step 350"],
        ["31.3 s", "critical pod runs"],
        ["41.0 s", "resumes at step 300"],
        ["0.0 s", "critical pod asks for the GPUs"],
        ["0.6 s", "hook asks for a save"],
        ["0.7 s", "saved"],
        ["1.7 s", "SIGTERM"],
        ["1.8 s", "process gone"],
        ["3.0 s", "critical pod runs"],
        ["12.7 s", "resumes at step 59"],
        ["0.0 s", "critical pod asks for the GPUs"],
        ["0.3 s", "hook asks for a save"],
        ["0.5 s", "saved"],
        ["1.4 s", "SIGTERM, ignored"],
        ["36.7 s", "last checkpoint, step 400"],
        ["40.5 s", "killed at step 435"],
        ["41.4 s", "critical pod runs"],
        ["51.0 s", "resumes at step 400"],
    ]


def test_who_can_t_see_it_reads_the_same() -> None:
    image = parsed(USUAL)
    description = image.findtext(f"{SVG}desc") or ""
    assert image.findtext(f"{SVG}title")
    assert [event for event in image.iter(f"{SVG}g") if words(event).strip() not in description] == []


def test_the_colours_of_the_dark_are_others() -> None:
    text = picture(USUAL)
    style, used = text.partition("<style>")[2].partition("</style>")[0], text.partition("</style>")[2]
    for colour in {part[:7] for part in used.split('fill="')[1:] if part.startswith("#")}:
        assert f'[fill="{colour}"]{{fill:#' in style
