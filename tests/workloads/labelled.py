"""The manifests that people labelled, as `tests/workloads/corpus/README.md` describes them."""

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from webhook.config.yaml_text import trees

CORPUS = Path(__file__).parent / "corpus"
ROUNDS = ("first", "second", *"abcdefghijklmnopqr")
"""In the order in which they were collected."""


@dataclass(frozen=True)
class Case:
    """A labelled manifest. `sure`: a careful person would be sure from the manifest alone."""

    file: str
    number: int
    round: str
    type: str
    sure: bool
    manifest: dict[str, Any]

    @property
    def where(self) -> str:
        return f"{self.file}:{self.number}"


def parts() -> tuple[str, ...]:
    """The parts that have manifests: between two draws nothing is set aside. Reads none of them."""
    return tuple(part for part in ("tune", "aside") if any((CORPUS / part).rglob("*.yaml")))


@cache
def cases(part: str) -> tuple[Case, ...]:
    """The manifests of a part of the corpus: "tune" or "aside"."""
    files = sorted((CORPUS / part).rglob("*.yaml"))
    return tuple(case for file in files for case in _cases(file))


def _cases(file: Path) -> list[Case]:
    where = file.relative_to(CORPUS).as_posix()
    return [_case(where, number, entry) for number, entry in enumerate(trees(file.read_text()), start=1)]


def _case(where: str, number: int, entry: Any) -> Case:
    """Takes no field but those of the format."""
    match entry:
        case {"source": str(), "round": round_, "sure": sure, "type": type_, "note": str(), "object": manifest, **more}:
            assert not more, f"{where}:{number}: {', '.join(more)}"
            return Case(where, number, round_, type_, sure, manifest)
    raise AssertionError(f"{where}:{number}: source, round, sure, type, note and object are required")
