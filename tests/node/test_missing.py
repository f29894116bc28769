"""A machine that can't run a node says which part it lacks, before anything is started."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console

from demonstration import frameworks
from demonstration.__main__ import Teller, main, possible
from installation.helm import ROOT
from localcluster.node import NodeError, packages

REAL_ROOT = sys.platform == "linux" and not os.geteuid()
HAVE = "from localcluster.node.packages import have_packages; have_packages()"


@pytest.fixture(autouse=True)
def _as_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(sys, "platform", "linux")


def test_another_system_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(NodeError, match="needs Linux, and this is darwin"):
        packages.have_packages()


def test_without_root_nothing_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(NodeError, match="needs root"):
        packages.have_packages()


def test_without_apt_the_missing_programs_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packages, "RIGHTS", {})
    monkeypatch.setattr(shutil, "which", lambda *_, **__: None)
    with pytest.raises(NodeError, match=r"needs buildah, conntrack, .*, and only root on Debian"):
        packages.have_packages()


def test_the_demonstration_says_it_in_a_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert main(tmp_path / "figures.json") == 1
    assert capsys.readouterr().err == "preemption-demo: a real node needs root, for its namespaces and mounts\n"
    assert not list(tmp_path.iterdir())


def test_without_frameworks_the_demonstration_says_how_to_get_them_and_goes_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(frameworks, "cache_folder", lambda: tmp_path)
    assert [case.letter for case in possible(Teller(Console(width=200)))] == ["a", "b", "c"]
    said = capsys.readouterr().out
    assert "cases (d), (e), (f), (g) need frameworks: `make test-frameworks` installs" in said


@pytest.mark.skipif(not REAL_ROOT, reason="only root can give rights up")
def test_root_without_rights_reads_which_it_lacks() -> None:
    command = ["setpriv", "--bounding-set=-sys_admin", sys.executable, "-c", HAVE]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert "NodeError: a real node needs namespaces of its own: unshare: " in run.stderr
