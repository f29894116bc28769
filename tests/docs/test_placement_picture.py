"""The picture of placement: what was counted stands in it, and every pod that has a node is drawn."""

from xml.etree import ElementTree as ET

from pictures.placement import picture

from demonstration.placement_figures import Layouts, Numbers, Place, read_layouts

from .markdown import ROOT

STORED = read_layouts(ROOT / "docs" / "pictures" / "placement.json")
RACKS = {"a": ["a-1", "a-2"], "b": ["b-1", "b-2"]}


def layouts(*places: Place) -> Layouts:
    return Layouts("v1.37.1", 8, RACKS, {"without": [list(places)]})


def test_a_gang_on_two_nodes_of_a_rack_crosses_nothing_and_strands_what_it_leaves() -> None:
    places = [Place("one", 2, "a-1"), Place("one", 2, "a-2"), Place("whole", 8, "b-1")]
    assert layouts().numbers(places) == Numbers(nodes=2, crossing=0, stranded=12, waiting=0)


def test_a_gang_in_two_racks_crosses_and_one_without_a_node_waits() -> None:
    places = [Place("one", 4, "a-1"), Place("one", 4, "b-1"), Place("two", 8, None), Place("two", 8, None)]
    assert layouts().numbers(places) == Numbers(nodes=2, crossing=1, stranded=8, waiting=1)


def test_the_stored_run_shows_what_the_page_says() -> None:
    """Packed gangs lie in one rack each and leave room for the large one, in every run."""
    for places in STORED.runs["Pack"]:
        assert STORED.numbers(places) == Numbers(nodes=12, crossing=0, stranded=0, waiting=0)
    for places in STORED.runs["without"]:
        found = STORED.numbers(places)
        assert (found.nodes, found.waiting) == (16, 1)
        assert found.crossing > 5


def test_every_pod_with_a_node_is_drawn_with_its_gang() -> None:
    image = ET.fromstring(picture(STORED))  # noqa: S314 - our own
    words = [each.text for each in image.iter("{http://www.w3.org/2000/svg}text")]
    assert words.count("1") == 2 * 4, "four pods in both pictures"
    assert words.count("L") == 4, "the large gang runs only where gangs are packed"
    assert "gangs that cross racks: 0 of 11" in words
