"""The archives of `make dist` have the CLI and its data, and a README that stands alone."""

import os
import subprocess
import sys
import tarfile
from email import message_from_string
from email.message import Message
from pathlib import Path
from zipfile import ZipFile

import pytest

from releasing.archives import archives, published

from .markdown import ROOT

DATA = {"webhook": (".yaml", ".html", ".css", ".js", ".svg", ".j2")}


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("dist")
    archives(ROOT, target)
    return target


@pytest.fixture(scope="module")
def wheel(dist: Path) -> ZipFile:
    (file,) = dist.glob("*.whl")
    return ZipFile(file)


def metadata(wheel: ZipFile) -> Message:
    (name,) = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
    return message_from_string(wheel.read(name).decode())


def test_the_wheel_installs_the_cli(dist: Path, tmp_path: Path) -> None:
    (file,) = dist.glob("*.whl")
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-index", "--no-compile"]
    subprocess.run([*pip, f"--target={tmp_path}", str(file)], check=True)
    assert (tmp_path / "bin" / "kubectl-gpu_tiers").exists()
    run = subprocess.run(
        [tmp_path / "bin" / "gpu-tiers", "review", ROOT / "examples" / "job-training.yaml"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert "tier: gpu-training" in run.stdout


def test_it_carries_the_data_that_the_code_reads(wheel: ZipFile) -> None:
    ours = {
        str(file.relative_to(ROOT))
        for folder, endings in DATA.items()
        for file in (ROOT / folder).rglob("*")
        if file.suffix in endings
    }
    assert ours
    assert ours - set(wheel.namelist()) == set()


def test_it_says_whose_it_is_and_where_it_is(wheel: ZipFile) -> None:
    said = metadata(wheel)
    assert said["Author"]
    assert {each.partition(",")[0] for each in said.get_all("Project-URL", [])} >= {"Repository", "Issues", "Changelog"}
    assert "Intended Audience :: Science/Research" in said.get_all("Classifier", [])


def test_every_link_of_its_readme_stands_alone(wheel: ZipFile) -> None:
    readme = str(metadata(wheel).get_payload())
    assert f"]({published(ROOT)}docs/install.md)" in readme
    assert "](docs/" not in readme
    assert 'srcset="docs/' not in readme
    assert f'{published(ROOT)}docs/pictures/what-happens-dark.svg?raw=true"' in readme


def test_the_sdist_has_no_tests_and_no_caches(dist: Path) -> None:
    (file,) = dist.glob("*.tar.gz")
    with tarfile.open(file) as archive:
        folders = {name.split("/")[1] for name in archive.getnames() if "/" in name}
    assert folders >= {"webhook", "certs", "README.md", "LICENSE", "pyproject.toml"}
    assert "tests" not in folders
