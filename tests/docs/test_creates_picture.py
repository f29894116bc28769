"""The cost of creates: the goals judge the measured values, and the picture shows each of them."""

from xml.etree import ElementTree as ET

import pytest
from generators.performance import tables
from pictures.creates import picture

from bench.figures import PANELS, Figure, Measured, Run, read_measured

from .markdown import ROOT

SVG = "{http://www.w3.org/2000/svg}"
STORED = read_measured(ROOT / "docs" / "pictures" / "creates.json")


def slowed(times: float, *cases: str) -> Measured:
    """The kept runs, in which some cases take so many times as long."""

    def slower(figure: Figure) -> Figure:
        factor = times if figure.key.case in cases else 1
        return Figure(figure.key, figure.rate / factor, figure.p50 * factor, figure.p99 * factor, figure.again)

    return Measured("v1.37.1", [Run(run.seconds, [slower(each) for each in run.figures]) for run in STORED.runs])


def verdicts(measured: Measured) -> dict[str, str]:
    """Return the verdicts by comparison."""
    cells = [line.split("|")[1:-1] for line in tables(measured)["goals"].splitlines()[2:]]
    return {f"{title.strip()}: {of.strip()}": verdict.strip() for title, of, *_, verdict in cells}


@pytest.mark.parametrize(
    ("slow", "goal"),
    [
        ("gpu-tiers", "What is added to a GPU pod: gpu-tiers / constant answers, ASGI"),
        ("3 replicas, a gang's pod", "A gang's pods, 8 clients: 3 replicas, a gang's pod / 3 replicas, a lone pod"),
        ("3 replicas, 1 tenant", "The slowest of 100, 32 clients: 3 replicas, 1 tenant / 1 replica, 1 tenant"),
        ("1 replica, 1 tenant", "What booking adds, one client: 1 replica, booking / ResourceQuota"),
    ],
)
def test_what_gets_slower_misses_its_goal(slow: str, goal: str) -> None:
    assert verdicts(slowed(0.01, slow))[goal] == "met"
    assert verdicts(slowed(100, slow))[goal] == "MISSED"


def test_every_goal_is_drawn_and_described() -> None:
    image = ET.fromstring(picture(STORED))  # noqa: S314 - our own
    dashed = [line for line in image.iter(f"{SVG}line") if "stroke-dasharray" in line.attrib]
    assert len(dashed) == sum(len(panel.goals) for panel in PANELS)
    slower = image.findtext(f"{SVG}desc") or ""
    assert [bar.label for panel in PANELS for bar in panel.bars if bar.label not in slower] == []


def test_refusals_to_try_again_are_counted() -> None:
    key = STORED.runs[0].figures[0].key
    again = Measured("v1.37.1", [Run(1, [Figure(key, 10, 5, 9, 2), *each.figures[1:]]) for each in STORED.runs])
    assert f"{key.case} ({2 * len(STORED.runs)} told to try again)" in "\n".join(tables(again).values())
