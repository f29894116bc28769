"""A shell's time, shortened."""

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from webhook.policy.checkpoint import hook_kinds


@dataclass(frozen=True)
class Naps:
    """The record of what scripts slept, whose `sleep` takes a moment whatever its argument."""

    noted: Path

    @property
    def count(self) -> int:
        return self.noted.read_text().count("\n") if self.noted.exists() else 0


@pytest.fixture
def naps(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Naps:
    """Let one second be a hundredth of one in scripts of this test."""
    folder = tmp_path_factory.mktemp("bin")
    sleep, noted = folder / "sleep", folder / "naps"
    sleep.write_text(f"#!/bin/sh\necho $1 >> {noted}\nexec {shutil.which('sleep')} 0.01\n")
    sleep.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    return Naps(noted)


@pytest.fixture
def termination_log(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The container's termination message, a file of this test."""
    file = tmp_path_factory.mktemp("dev") / "termination-log"
    monkeypatch.setattr(hook_kinds, "TERMINATION_LOG", str(file))
    return file
