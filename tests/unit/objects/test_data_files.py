"""The YAML files beside the code: read once, and cached beside the bytecode where that may be written."""

import sys
import zipfile
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest
import yaml

from webhook.objects.data_files import data_file

NAME = "of_data_files"
TEXT = "kinds: [{plural: jobs, port: 80, gang: true, label: null}]\n"
CONTENT = {"kinds": [{"plural": "jobs", "port": 80, "gang": True, "label": None}]}


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    folder = tmp_path / NAME
    (folder / "__pycache__").mkdir(parents=True)
    (folder / "__init__.py").touch()
    (folder / "kinds.yaml").write_text(TEXT)
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    yield folder
    sys.modules.pop(NAME, None)


def read(package: Path, file: str = "kinds.yaml") -> object:
    if NAME not in sys.modules:
        sys.path.insert(0, str(package.parent))
        import_module(NAME)
        sys.path.remove(str(package.parent))
    return data_file(NAME, file)


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
    (package / "__pycache__").rmdir()
    (package / "__pycache__").touch()
    assert read(package) == CONTENT
    assert read(package) == CONTENT


def test_a_file_in_a_folder_below_is_cached_there(package: Path) -> None:
    (package / "presets").mkdir()
    (package / "presets" / "four.yaml").write_text(TEXT)
    assert read(package, "presets/four.yaml") == CONTENT
    assert list((package / "presets" / "__pycache__").glob("four*.msgpack"))


def test_a_file_in_an_archive_is_parsed_each_time(package: Path) -> None:
    archive = package.parent / "app.zip"
    with zipfile.ZipFile(archive, "w") as packed:
        for file in ("__init__.py", "kinds.yaml"):
            packed.write(package / file, f"{NAME}/{file}")
    assert read(archive / NAME) == CONTENT
    assert read(archive / NAME) == CONTENT
