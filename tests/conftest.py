"""Tells in one line why the tests of a folder were skipped, however many they are. It skips none."""

from collections.abc import Generator

import pytest


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Give a skip the folder as its place: pytest counts those of one place and one reason, and prints them once."""
    report = yield
    if report.skipped and isinstance(report.longrepr, tuple):
        report.longrepr = (str(item.path.parent), None, report.longrepr[2])  # type: ignore[assignment]
    return report
