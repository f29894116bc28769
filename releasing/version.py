"""The version, and where it stands."""

import re
from collections.abc import Iterator
from pathlib import Path

SEMANTIC = re.compile(r"(\d+)\.(\d+)\.(\d+)(?:-(?:alpha|beta|rc)\.(\d+))?")
_CHART = Path("charts/gpu-tiers/Chart.yaml")
_SOURCE = (Path("pyproject.toml"), re.compile(r'(?<=^version = ").+?(?="$)', re.MULTILINE))
_COPIES = (re.compile(r"(?<=^version: ).+$", re.MULTILINE), re.compile(r"(?<=^appVersion: ).+$", re.MULTILINE))
_TAG = re.compile(r"(?<=gpu-tiers:)\d+\.\d+\.\d+[-.\w]*(?<![.])")


class ReleaseError(Exception):
    """Why there is no release, in a sentence."""


def agreed(root: Path) -> str:
    """The version that every place says. Raises ReleaseError where one says another."""
    said = list(stated(root))
    (_, version), *rest = said or [(root, "")]
    for file, other in rest:
        if other != version:
            raise ReleaseError(f"{file} says {other}, and {_SOURCE[0]} says {version}; make them one")
    return version


def checked(version: str, before: str) -> str:
    """A new version. Raises ReleaseError where it is none, or not later than the one before."""
    if not SEMANTIC.fullmatch(version):
        raise ReleaseError(f"{version!r} is no version; write one such as 0.2.0 or 0.2.0-rc.1")
    if _order(version) <= _order(before):
        raise ReleaseError(f"{version} does not come after {before}; write a later one")
    return version


def _order(version: str) -> tuple[int, ...]:
    found = SEMANTIC.fullmatch(version)
    if not found:
        raise ReleaseError(f"pyproject.toml has the version {version!r}, which is none")
    major, minor, patch, candidate = found.groups()
    return int(major), int(minor), int(patch), int(candidate) if candidate else 1 << 30


def stated(root: Path) -> Iterator[tuple[Path, str]]:
    """Each place that says the version, and what it says."""
    for file, patterns in _places(root):
        text = file.read_text(encoding="utf-8")
        yield from ((file.relative_to(root), found[0]) for pattern in patterns for found in pattern.finditer(text))


def state(root: Path, version: str) -> None:
    """Have every place say this version."""
    for file, patterns in _places(root):
        text = file.read_text(encoding="utf-8")
        for pattern in patterns:
            text = pattern.sub(version, text)
        file.write_text(text, encoding="utf-8")


def _places(root: Path) -> Iterator[tuple[Path, tuple[re.Pattern[str], ...]]]:
    yield root / _SOURCE[0], (_SOURCE[1],)
    yield root / _CHART, (*_COPIES, _TAG)
    for page in (root / "README.md", *sorted((root / "docs").rglob("*.md"))):
        if _TAG.search(page.read_text(encoding="utf-8")):
            yield page, (_TAG,)
