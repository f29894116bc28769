"""How the tests are shared out where several processes run them, how hard hypothesis tries, and what is printed.

It skips none.
"""

import os
from collections.abc import Generator

import pytest
from hypothesis import settings

settings.register_profile("quick", max_examples=50, deadline=None)
settings.register_profile("thorough", settings.get_profile("ci"), max_examples=200, deadline=None)
settings.load_profile("thorough" if os.environ.get("CI") == "true" else "quick")

ROOMS = {
    "node": "node",
    "frameworks": "frameworks",
    "apiserver": "clusters",
    "chart": "clusters",
    "docs": "machine",
    "localcluster": "machine",
}
"""Folders by the room that they share, for its cluster. Both of `machine` use the one of `make cluster`."""
OTHERS = "code"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Name each test's room, which one process runs as a whole, and bring the long rooms to the front."""
    rooms = [*dict.fromkeys(ROOMS.values()), OTHERS]
    for item in items:
        item.add_marker(pytest.mark.xdist_group(room(item)))
    items.sort(key=lambda item: rooms.index(room(item)))


def room(item: pytest.Item) -> str:
    """The room of a test, by its folder below tests."""
    folder = item.path.relative_to(item.config.rootpath / "tests").parts[0]
    return ROOMS.get(folder, OTHERS)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: object) -> None:
    """Print what a process that has ended wanted to be read."""
    reporter = node.config.pluginmanager.get_plugin("terminalreporter")
    for line in getattr(node, "workeroutput", {}).get("announced", ()):
        reporter.write_line(line)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Give a skip the folder as its place: pytest counts those of one place and one reason, and prints them once."""
    report = yield
    if report.skipped and isinstance(report.longrepr, tuple):
        report.longrepr = (str(item.path.parent), None, report.longrepr[2])  # type: ignore[assignment]
    return report
