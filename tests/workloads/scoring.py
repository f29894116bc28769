"""Scores the classification against manifests that people labelled; decides nothing about them."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from webhook.cli.documents import Document
from webhook.cli.finding import Finding
from webhook.cli.review import desk_for
from webhook.config.load import parse

CORPUS = Path(__file__).parent / "corpus"
NO_GPU = re.compile(r"custom|rdma|efa|infiniband|sriov|hugepages|kvm|fuse|memory|cores|\bnet\b")
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


def gpu_names(tree: object) -> Iterator[str]:
    """Names under which containers ask for devices: clusters call their GPUs by vendor, by model, or by slice."""
    if isinstance(tree, list):
        for each in tree:
            yield from gpu_names(each)
    elif isinstance(tree, dict):
        for key, value in tree.items():
            if key in ("limits", "requests") and isinstance(value, dict):
                yield from (name for name in value if "/" in name and not NO_GPU.search(name))
            yield from gpu_names(value)


async def scored(part: str) -> list[Scored]:
    """What `gpu-tiers review` says of each, with the four-tier preset and a list of all the GPUs that there are."""
    names = sorted({name for case in cases(part) for name in gpu_names(case.manifest)})
    policy = {"apiVersion": "config.gpu-tiers.dev/v1alpha1", "kind": "TierPolicy"}
    resources = [*({"name": name} for name in names), {"deviceClassName": "gpu.nvidia.com"}]
    desk = desk_for(parse(yaml.safe_dump(policy | {"resources": resources})), [])
    return [_scored(case, await desk.finding(Document.of(case.where, case.manifest))) for case in cases(part)]


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
