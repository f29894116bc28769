"""Scores the classification against manifests that people labelled."""

import asyncio
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache

import yaml

from tests.workloads.labelled import Case, cases
from tests.workloads.sources import source_of
from webhook.cli.manifests.documents import Document
from webhook.cli.manifests.finding import Finding
from webhook.cli.manifests.inputs import cluster_of
from webhook.cli.manifests.judge import judge_at
from webhook.config.load import parse
from webhook.policy.values.tier_policy import TierPolicy
from webhook.policy.values.tiers import Tier

NO_GPU = re.compile(r"custom|rdma|efa|infiniband|sriov|hugepages|kvm|fuse|memory|cores|\bnet\b")


PLACES = {0: "right", -1: "lower", 1: "higher"}


@dataclass(frozen=True)
class Scored:
    """The verdict on a case, with the source of the evidence, its tier, and the one that its type deserves."""

    case: Case
    said: str
    source: str
    tier: Tier | None
    deserved: Tier | None

    @property
    def right(self) -> bool:
        return self.said == self.case.type

    @property
    def harmful(self) -> bool:
        """A workload that a person waits for, taken for training: it would evict others and be given a hook."""
        return self.said == "training" and self.case.type in ("serving", "interactive")

    @property
    def place(self) -> str:
        """Return how its tier lies to that of its type: one of PLACES; "" where it has no GPUs, or no type."""
        if self.tier is None or self.deserved is None:
            return ""
        return PLACES[(self.tier.value > self.deserved.value) - (self.tier.value < self.deserved.value)]


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


def scored(part: str, preset: str = "four-tier") -> tuple[Scored, ...]:
    """Return the output of `gpu-tiers review` for each under a preset, with a list of all GPUs that exist."""
    return _scored_once(part, preset)


@cache
def _scored_once(part: str, preset: str) -> tuple[Scored, ...]:
    return asyncio.run(_reviewed(cases(part), preset))


async def _reviewed(labelled: Iterable[Case], preset: str) -> tuple[Scored, ...]:
    names = sorted({name for case in labelled for name in gpu_names(case.manifest)})
    file = {"apiVersion": "config.gpu-tiers.dev/v1alpha1", "kind": "TierPolicy", "preset": preset}
    resources = [*({"name": name} for name in names), {"deviceClassName": "gpu.nvidia.com"}]
    policy = parse(yaml.safe_dump(file | {"resources": resources}))
    judge = judge_at(cluster_of(policy, []), policy)
    return tuple(
        [_scored(case, await judge.finding(Document.of(case.where, case.manifest)), policy) for case in labelled]
    )


def _scored(case: Case, finding: Finding, policy: TierPolicy) -> Scored:
    evidence = finding.evidence
    return Scored(
        case, evidence.type.value if evidence else "other", source_of(evidence), _tier(finding), _deserved(case, policy)
    )


def _tier(finding: Finding) -> Tier | None:
    """The object's tier, else that of the first of its parts that has one."""
    own = finding.verdict.assignment
    return own.tier if own else next((tier for part in finding.parts if (tier := _tier(part))), None)


def _deserved(case: Case, policy: TierPolicy) -> Tier | None:
    """The policy's tier for the type that a person gave it."""
    known = {each.value: name for each, name in policy.tier_of_type.items()}
    return policy.tiers.get(known.get(case.type, ""))


def share(results: Iterable[Scored]) -> float:
    """The part that is right."""
    marks = [each.right for each in results]
    return sum(marks) / len(marks)
