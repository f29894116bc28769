"""Scores the classification against manifests that people labelled."""

import asyncio
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache

import yaml

from tests.workloads.labelled import Case, cases
from tests.workloads.sources import source_of
from webhook.cli.documents import Document
from webhook.cli.finding import Finding
from webhook.cli.review import desk_for
from webhook.config.load import parse

NO_GPU = re.compile(r"custom|rdma|efa|infiniband|sriov|hugepages|kvm|fuse|memory|cores|\bnet\b")


@dataclass(frozen=True)
class Scored:
    """What was said of a case, with the source of the evidence."""

    case: Case
    said: str
    source: str

    @property
    def right(self) -> bool:
        return self.said == self.case.type

    @property
    def harmful(self) -> bool:
        """A workload that a person waits for, taken for training: it would evict others and be given a hook."""
        return self.said == "training" and self.case.type in ("serving", "interactive")


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


@cache
def scored(part: str) -> tuple[Scored, ...]:
    """What `gpu-tiers review` says of each, with the four-tier preset and a list of all the GPUs that there are."""
    return asyncio.run(_reviewed(cases(part)))


async def _reviewed(labelled: Iterable[Case]) -> tuple[Scored, ...]:
    names = sorted({name for case in labelled for name in gpu_names(case.manifest)})
    policy = {"apiVersion": "config.gpu-tiers.dev/v1alpha1", "kind": "TierPolicy"}
    resources = [*({"name": name} for name in names), {"deviceClassName": "gpu.nvidia.com"}]
    desk = desk_for(parse(yaml.safe_dump(policy | {"resources": resources})), [])
    return tuple([_scored(case, await desk.finding(Document.of(case.where, case.manifest))) for case in labelled])


def _scored(case: Case, finding: Finding) -> Scored:
    evidence = finding.evidence
    return Scored(case, evidence.type.value if evidence else "other", source_of(evidence))


def share(results: Iterable[Scored]) -> float:
    """The part that is right."""
    marks = [each.right for each in results]
    return sum(marks) / len(marks)
