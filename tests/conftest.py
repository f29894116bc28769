"""How the tests are shared out where several processes run them, and what of them is printed."""

from collections.abc import Generator

import pytest

ROOMS = (
    "node",
    "apiserver",
    "chart",
    "frameworks",
    "machine",
    "docs",
    "unit",
    "workloads",
    "property",
)
"""The groups, the long ones first: each is run by one process, for its cluster. They share nothing with each other."""
ELSEWHERE = {
    "localcluster": "machine",
    "node/test_ending.py": "machine",
    "node/test_missing.py": "property",
    "node/test_ranks.py": "property",
}
"""Folders and files whose group isn't named after their folder; what stands here uses no cluster of its folder's."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Name each test's group, and bring the long ones to the front."""
    for item in items:
        item.add_marker(pytest.mark.xdist_group(room(item)))
    turns = {name: number for number, name in enumerate(ROOMS)}
    items.sort(key=lambda item: turns.get(room(item), len(turns)))


def room(item: pytest.Item) -> str:
    """The group of a test, by its file or its folder below tests."""
    folder, *below = item.path.relative_to(item.config.rootpath / "tests").parts
    return ELSEWHERE.get("/".join((folder, *below)), ELSEWHERE.get(folder, folder))


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
