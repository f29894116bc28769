"""The site holds every page, in a menu, asks nothing of others, and its build stops at a link that leads nowhere."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from website.build import SETTINGS, SITE, built, zensical
from website.layout import NAMES, Layout

from .markdown import ROOT, page, pages

_ASKED = re.compile(
    r"""<(?:script|img|iframe|source)[^>]*\bsrc(?:set)?=["']?(https?:)?//|<link[^>]*\bhref=["']?https?://"""
)
_URL = re.compile(r"url\(\s*['\"]?https?://|@import\s+['\"]https?://")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    run = built(folder)
    assert run.returncode == 0, run.stdout
    return folder / SITE


def in_the_menu(entry: Any) -> Iterator[str]:
    if isinstance(entry, str):
        yield entry
    for each in entry.values() if isinstance(entry, dict) else entry if isinstance(entry, list) else ():
        yield from in_the_menu(each)


def test_every_page_is_in_the_menu_once() -> None:
    menu = sorted(in_the_menu(tomllib.loads(page(SETTINGS).text)["project"]["nav"]))
    below = {str(each.path.relative_to(ROOT / "docs")) for each in pages() if each.path.is_relative_to(ROOT / "docs")}
    outside = {"README.md", "CONTRIBUTING.md", "CHANGELOG.md", "examples/README.md"}
    assert menu == sorted(below | {NAMES[name] for name in outside})


def test_each_is_built_and_what_it_links_to_as_well(site: Path) -> None:
    files = {str(file.relative_to(site)) for file in site.rglob("*") if file.is_file()}
    assert files >= {"index.html", "overview.html", "researchers.html", "decisions/index.html", "examples.html"}
    assert files >= {
        "examples/training/train.py.html",
        "examples/warnings/lost-node.yaml.html",
        "pictures/way-of-a-pod.svg",
    }


def test_it_asks_nothing_of_others(site: Path) -> None:
    asked = [str(file) for file in site.rglob("*.html") if _ASKED.search(file.read_text(encoding="utf-8"))]
    assert asked == []
    assert [str(file) for file in site.rglob("*.css") if _URL.search(file.read_text(encoding="utf-8"))] == []


@pytest.mark.parametrize("link", ["nowhere.md", "#no-such-heading"])
def test_a_link_that_leads_nowhere_stops_the_build(link: str, tmp_path: Path) -> None:
    settings = tmp_path / SETTINGS
    settings.write_text('[project]\nsite_name = "one page"\n')
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "index.md").write_text(f"# A page\n\n[somewhere]({link})\n")
    run = zensical(settings)
    assert run.returncode != 0
    assert "does not exist" in run.stdout


def test_a_link_out_of_the_docs_must_lead_somewhere_too(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"policy\.md: \.\./gone\.yaml leads nowhere"):
        Layout(tmp_path / "pages").turned("../gone.yaml", ROOT / "docs" / "policy.md")
