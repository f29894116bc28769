"""The shares of several processes that run the tests, hypothesis's effort, and what is printed."""

import gc
import os
from collections import Counter, defaultdict
from collections.abc import Generator
from functools import cache
from pathlib import Path, PurePath

import pytest
from hypothesis import HealthCheck, settings
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

from tests import environment

environment.settle()  # before any test module is read, and in xdist before its processes start
gc.disable()  # until all tests are collected, which makes little garbage; each process of xdist collects them all
ROOT = Path(__file__).parents[1]
UNTIMED = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
"""On a busy machine nothing is told by how long a test took."""
settings.register_profile("quick", max_examples=30, **UNTIMED)
settings.register_profile("thorough", settings.get_profile("ci"), max_examples=200, **UNTIMED)
settings.load_profile("thorough" if os.environ.get("CI") == "true" else "quick")

WAITING = (
    *("node from o", "node", "apiserver", "apiserver from few", "apiserver from k", "apiserver from pr"),
    *("docs", "chart", "chart from m", "machine", "alerts"),
    *("frameworks", "other_version", "browser", "operators"),
)
COMPUTING = (
    *("honest", "texts", "unit/cli", "unit/server", "unit/admission", "unit"),
    *("ledger", "workloads", "property", "fuzz"),
)
ROOMS = (*WAITING, *COMPUTING)
"""The long ones first. One process runs a room as a whole, for its cluster; rooms share nothing with each other.

Rooms with a cluster mostly wait for it. Those without one fill the cores between, at a lower priority.
"""
PARTS = {
    "tests/apiserver": {
        "test_pr": "apiserver from pr",
        "test_k": "apiserver from k",
        "test_few": "apiserver from few",
    },
    "tests/chart": {"test_m": "chart from m"},
    "tests/node": {"test_o": "node from o"},
}
"""From these files on the tests of a folder have a process and a cluster of their own: they mostly wait. The parts take
about as much CPU time as each other. A cluster of yours is one, so one process has all tests of the API server."""
TEXTS = ("tests/chart", "tests/docs")
"""Folders in which a file without the mark `apiserver` reads pages or renders the chart, and uses no cluster."""
ELSEWHERE = {
    "tests/localcluster": "machine",
    "tests/apiserver/test_faults.py": "machine",
    "tests/apiserver/test_few_seats.py": "machine",
    "tests/apiserver/test_restarted_apiserver.py": "machine",
    "tests/node/test_ending.py": "machine",
    "tests/node/test_missing.py": "property",
    "tests/node/test_ranks.py": "property",
}
"""Folders and files whose room isn't named after their folder: they use no cluster of that folder."""


@cache
def is_text(file: PurePath) -> bool:
    """Return True for a file in TEXTS that uses no cluster."""
    return "/".join(file.parts[:2]) in TEXTS and "mark.apiserver" not in (ROOT / file).read_text(encoding="utf-8")


@cache
def room_of(file: PurePath) -> str:
    """The room of a file, by its name or its folder."""
    folder = "/".join(file.parts[:2])
    elsewhere = ELSEWHERE.get(file.as_posix()) or ELSEWHERE.get(folder)
    if folder == "tests/unit":
        part = "/".join(file.parts[1:3])
        return part if part in COMPUTING else "unit"
    if is_text(file):
        return "texts"
    parts = {} if "GPU_TIERS_TEST_CLUSTER" in os.environ else PARTS.get(folder, {})
    return elsewhere or next((part for first, part in parts.items() if file.name >= first), file.parts[1])


def room(nodeid: str) -> str:
    """The room of a test."""
    return room_of(PurePath(nodeid.partition("::")[0]))


class ByRoom(LoadScopeScheduling):
    """Gives each process a room at a time. The marks of xdist's own loadgroup are lost on pytest 9."""

    def _split_scope(self, nodeid: str) -> str:
        return room(nodeid)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> ByRoom | None:
    """Share the tests out by rooms, in the order of ROOMS, where --dist=loadscope asks for that."""
    config.option.loadscopereorder = False
    return ByRoom(config, log) if config.getvalue("dist") == "loadscope" else None


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Return how many processes run the tests: five for two cores, because most rooms wait for a cluster.

    Nine are faster on a quiet machine. On a busy one so many clusters keep each other's API servers from answering in
    their time, and a run that fails costs more than a longer one.
    """
    return max(2, min(round(2.5 * (os.cpu_count() or 1)), len(ROOMS)))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Bring the long rooms to the front."""
    turns = {name: number for number, name in enumerate(ROOMS)}
    items.sort(key=lambda item: turns.get(room(item.nodeid), len(turns)))


def pytest_collection_finish() -> None:
    """Turn the garbage collector on. It will not look at the modules and the 8,000 tests again each time."""
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Give way to the processes of rooms that wait: the longest of them decides how long all takes."""
    if "PYTEST_XDIST_WORKER" in os.environ and room(item.nodeid) in COMPUTING:
        os.nice(max(0, 5 - os.nice(0)))


SECONDS: Counter[str] = Counter()
"""How long the tests of each room took, their fixtures with them. One process runs a room."""
ANNOUNCED: list[str] = []
TABLES: defaultdict[str, list[dict[str, object]]] = defaultdict(list)
"""What tests have measured: rows by the title of their table, as they recorded them as properties."""


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: object) -> None:
    """Keep what a process that has ended wanted to be read, and print it."""
    reporter = node.config.pluginmanager.get_plugin("terminalreporter")
    for line in getattr(node, "workeroutput", {}).get("announced", ()):
        ANNOUNCED.append(line)
        reporter.write_line(line)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Add up the seconds of rooms, and keep what was measured."""
    SECONDS[room(report.nodeid)] += report.duration
    for title, row in report.user_properties if report.when == "call" else ():
        if isinstance(row, dict):
            TABLES[title].append(row)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print where the time of several processes went, how many control planes were started, and what was measured."""
    if ANNOUNCED:
        planes = sum(line.startswith("kube-apiserver ") for line in ANNOUNCED)
        rooms = ", ".join(f"{name} {seconds:.0f} s" for name, seconds in SECONDS.most_common() if seconds >= 1)
        terminalreporter.write_line(f"{planes} control planes; {rooms}")
    for title, rows in TABLES.items():
        lines = [list(rows[0]), *([str(cell) for cell in row.values()] for row in rows)]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        terminalreporter.section(title)
        for line in lines:
            terminalreporter.write_line("  ".join(map(str.ljust, line, widths)).rstrip())


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Give a skip the folder as its place: pytest counts those of one place and one reason, and prints them once."""
    report = yield
    if report.skipped and isinstance(report.longrepr, tuple):
        report.longrepr = (str(item.path.parent), None, report.longrepr[2])  # type: ignore[assignment]
    return report
