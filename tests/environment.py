"""The shell of the person who runs the tests: its clusters, proxies, languages and folders reach no test."""

import locale
import os
import re
import sys
import time

from localcluster.binaries import cache_folder
from localcluster.environment import without_a_persons

_A_PERSONS = re.compile(
    r"XDG_.*|LC_.*|LANGUAGE|OTEL_.*|(NO|FORCE)_COLOR|PY_COLORS|CLICOLOR.*|TTY_.*|COLUMNS|LINES|TERMINAL_WIDTH"
    r"|PYTHONDONTWRITEBYTECODE"
)
"""Beside what a cluster of ours does not hear either."""


def settle() -> None:
    """Take it from this process, and so from its children. The cache stays where it was, with what is built in it."""
    pinned = {"GPU_TIERS_CACHE": str(cache_folder()), "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8", "TZ": "UTC"}
    pinned["GOGC"] = "300"  # for control planes: a tenth of an API server's CPU, for 150 MiB more
    environment = {
        name: value for name, value in without_a_persons().items() if not _A_PERSONS.fullmatch(name)
    } | pinned
    for name in os.environ.keys() - environment.keys():
        del os.environ[name]
    os.environ.update(environment)
    sys.dont_write_bytecode = False  # each process would compile all test modules again
    locale.setlocale(locale.LC_ALL, "C.UTF-8")
    time.tzset()
