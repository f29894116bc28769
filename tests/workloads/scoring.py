"""Scores the classification against manifests that people labelled; decides nothing about them."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from webhook.cli.documents import Document
from webhook.cli.findings import Finding
from webhook.cli.review import desk_for
from webhook.config.load import parse

NAMED_AFTER_MODELS = ("a100", "a40", "a10", "l40", "l4", "h100", "rtxa6000", "gh200", "3090", "4090", "mig-small")
POLICY = yaml.safe_dump(
    {
        "apiVersion": "config.gpu-tiers.dev/v1alpha1",
        "kind": "TierPolicy",
        "resources": [
            *({"name": name} for name in ("nvidia.com/gpu", "amd.com/gpu")),
            *({"name": f"nvidia.com/{model}"} for model in NAMED_AFTER_MODELS),
            *(
                {"name": f"nvidia.com/mig-{size}"}
                for size in ("1g.5gb", "1g.10gb", "2g.10gb", "2g.20gb", "3g.20gb", "3g.40gb", "7g.80gb")
            ),
            {"deviceClassName": "gpu.nvidia.com"},
        ],
    }
)
"""The default preset, with what some clusters call their GPUs: the types are scored, not that list."""

CORPUS = Path(__file__).parent / "corpus"
TYPES = ("training", "serving", "batch", "interactive", "other")


@dataclass(frozen=True)
class Case:
    """A labelled manifest. `sure`: a careful person would be sure from the manifest alone."""

    where: str
    type: str
    sure: bool
    manifest: dict[str, Any]


@dataclass(frozen=True)
class Scored:
    """What was said of a case, with the evidence."""

    case: Case
    said: str
    evidence: str

    @property
    def right(self) -> bool:
        return self.said == self.case.type

    @property
    def harmful(self) -> bool:
        """A workload that a person waits for, taken for training: it would evict others and be given a hook."""
        return self.said == "training" and self.case.type in ("serving", "interactive")


def cases(part: str) -> Iterator[Case]:
    """The manifests of a part of the corpus: "tune" or "aside"."""
    for file in sorted((CORPUS / part).glob("*.yaml")):
        for number, entry in enumerate(yaml.safe_load_all(file.read_text())):
            if entry:
                yield Case(f"{part}/{file.name}:{number + 1}", entry["type"], entry["sure"], entry["object"])


async def scored(part: str) -> list[Scored]:
    """What `gpu-tiers review` says of each, with the four-tier preset."""
    desk = desk_for(parse(POLICY), [])
    return [_scored(case, await desk.finding(Document(case.where, case.manifest))) for case in cases(part)]


def _scored(case: Case, finding: Finding) -> Scored:
    evidence = finding.evidence
    return Scored(case, evidence.type.value if evidence else "other", str(evidence))


def share(results: Iterable[Scored]) -> float:
    """The part that is right."""
    marks = [each.right for each in results]
    return sum(marks) / len(marks)


def confusion(results: Iterable[Scored]) -> str:
    """A table: rows what it is, columns what was said."""
    counts = Counter((each.case.type, each.said) for each in results)
    head = f"{'is / said':12}" + "".join(f"{name:>12}" for name in TYPES)
    rows = [f"{is_:12}" + "".join(f"{counts[is_, said] or '.':>12}" for said in TYPES) for is_ in TYPES]
    return "\n".join((head, *rows))
