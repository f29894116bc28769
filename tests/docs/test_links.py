"""Every link leads somewhere."""

import pytest

from .markdown import Page, pages


@pytest.mark.parametrize("page", pages(), ids=str)
def test_every_link_within_the_project_resolves(page: Page) -> None:
    for link in page.links():
        if link.startswith(("https://", "http://")):
            continue
        place, _, anchor = link.partition("#")
        target = (page.path.parent / place).resolve() if place else page.path
        assert target.exists(), link
        if anchor:
            assert anchor in Page(target).anchors(), link


def test_links_were_found() -> None:
    assert sum(len(page.links()) for page in pages()) > 30
