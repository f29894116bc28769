"""Debian's promtool and its Prometheus. Without them the tests are skipped with the reason; under CI=true they fail."""

from pathlib import Path

from localcluster import prometheus as of_debian
from localcluster.debian import PackageError
from localcluster.for_tests import missing


def promtool() -> Path:
    return _had("promtool")


def prometheus() -> Path:
    return _had("prometheus")


def _had(name: str) -> Path:
    try:
        return of_debian.program(name)
    except PackageError as error:
        missing(str(error))
