"""How the tests are shared out where several processes run them, how hard hypothesis tries, and what is printed."""

import os
from collections.abc import Generator
from pathlib import PurePath

import pytest
from hypothesis import settings
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

settings.register_profile("quick", max_examples=30, deadline=None)
settings.register_profile("thorough", settings.get_profile("ci"), max_examples=200, deadline=None)
settings.load_profile("thorough" if os.environ.get("CI") == "true" else "quick")

ROOMS = (
    *("node", "apiserver", "machine", "chart", "commands", "docs", "browser", "other_version"),
    *("unit", "workloads", "frameworks", "operators", "property", "ledger"),
)
"""The long ones first. One process runs a room as a whole, for its cluster; rooms share nothing with each other."""
ELSEWHERE = {
    "tests/localcluster": "machine",
    "tests/apiserver/test_faults.py": "machine",
    "tests/apiserver/test_alerts.py": "commands",
    "tests/apiserver/test_audit.py": "commands",
    "tests/apiserver/test_commands.py": "commands",
    "tests/apiserver/test_explain.py": "commands",
    "tests/apiserver/test_kueue_admission.py": "commands",
    "tests/apiserver/test_lint.py": "commands",
    "tests/apiserver/test_page.py": "commands",
    "tests/apiserver/test_review_server.py": "commands",
    "tests/node/test_ending.py": "machine",
    "tests/node/test_missing.py": "property",
    "tests/node/test_ranks.py": "property",
}
"""Folders and files whose room isn't named after their folder: they use no cluster of that folder."""


def room(nodeid: str) -> str:
    """The room of a test, by its file or its folder."""
    file = PurePath(nodeid.partition("::")[0])
    folder = "/".join(file.parts[:2])
    return ELSEWHERE.get(file.as_posix()) or ELSEWHERE.get(folder) or file.parts[1]


class ByRoom(LoadScopeScheduling):
    """Gives each process a room at a time. The marks of xdist's own loadgroup are lost on pytest 9."""

    def _split_scope(self, nodeid: str) -> str:
        return room(nodeid)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> ByRoom | None:
    """Share the tests out by rooms, in the order of ROOMS, where --dist=loadscope asks for that."""
    config.option.loadscopereorder = False
    return ByRoom(config, log) if config.getvalue("dist") == "loadscope" else None


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Bring the long rooms to the front."""
    turns = {name: number for number, name in enumerate(ROOMS)}
    items.sort(key=lambda item: turns.get(room(item.nodeid), len(turns)))


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
