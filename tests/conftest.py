"""Shares the tests out where several processes run them: a room, for its cluster, to each; the longest first."""

import pytest

ROOMS = {
    "node": "node",
    "frameworks": "frameworks",
    "apiserver": "clusters",
    "chart": "clusters",
    "docs": "machine",
    "localcluster": "machine",
}
"""Folders by the room that they share. Both of `machine` use the one cluster of `make cluster`."""
OTHERS = "code"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Name each test's room, and bring the long rooms to the front."""
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
