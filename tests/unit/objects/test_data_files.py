"""The YAML files beside the code: read once, and cached beside the bytecode where that may be written."""

import sys
from pathlib import Path

import pytest
import yaml

from webhook.objects.data_files import data_file

TEXT = "kinds: [{plural: jobs, port: 80, gang: true, label: null}]\n"
CONTENT = {"kinds": [{"plural": "jobs", "port": 80, "gang": True, "label": None}]}


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / "kinds.yaml").write_text(TEXT)
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    return tmp_path


def read(package: Path) -> object:
    return data_file(str(package / "table.py"), "kinds.yaml")


@pytest.fixture
def no_parser(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert read(package) == CONTENT
    monkeypatch.setattr(yaml, "load", None)


@pytest.mark.usefixtures("no_parser")
def test_a_file_is_parsed_once(package: Path) -> None:
    assert read(package) == CONTENT
    assert [each.suffix for each in (package / "__pycache__").iterdir() if "kinds" in each.name] == [".msgpack"]


def test_a_changed_file_is_parsed_again(package: Path) -> None:
    assert read(package) == CONTENT
    (package / "kinds.yaml").write_text("kinds: []\n")
    assert read(package) == {"kinds": []}
    assert read(package) == {"kinds": []}


def test_a_broken_cache_is_made_again(package: Path) -> None:
    assert read(package) == CONTENT
    (cache,) = (package / "__pycache__").glob("kinds*.msgpack")
    whole = cache.read_bytes()
    for broken in (b"", whole[:4], whole[:-3], whole[:8]):
        cache.write_bytes(broken)
        assert read(package) == CONTENT
        assert cache.read_bytes() == whole


def test_where_no_bytecode_is_written_no_cache_is(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    assert read(package) == CONTENT
    assert not list((package / "__pycache__").glob("kinds*"))


def test_a_folder_that_cannot_be_written_only_costs_time(package: Path) -> None:
    """A file stands where the folder would, because a root user may write everywhere."""
    for each in (package / "__pycache__").iterdir():
        each.unlink()
    (package / "__pycache__").rmdir()
    (package / "__pycache__").touch()
    assert read(package) == CONTENT
    assert read(package) == CONTENT
