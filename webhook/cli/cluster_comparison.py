"""Compares two policies for the workloads of a cluster, which is read once."""

from dataclasses import dataclass, replace

from webhook.cli.documents import Document
from webhook.cli.gathering import Gathering
from webhook.cli.policy_changes import ObjectChange, change_of, ruled_under
from webhook.cli.read_workloads import WorkloadsOfCluster
from webhook.cli.ruling import VerdictName
from webhook.policy.values.tier_policy import TierPolicy


@dataclass(frozen=True, slots=True)
class _Judged:
    """Whether either policy says anything of an object, and what changes."""

    concerned: bool
    change: ObjectChange | None


class Comparison:
    """What becomes of each workload that is gathered, under the old policy and the new one."""

    def __init__(self, there: WorkloadsOfCluster, old: TierPolicy, new: TierPolicy) -> None:
        self._ways = [(there.judged_by(policy), policy) for policy in (old, new)]
        self.gathering: Gathering[_Judged] = Gathering(both(old, new).kinds, self._judged)

    @property
    def objects(self) -> int:
        """The workloads that either policy says anything of."""
        return sum(any(part.concerned for part in each.judged) for each in self.gathering.found.values())

    @property
    def changes(self) -> list[ObjectChange]:
        """One of each workload at the most, by namespace, kind and name."""
        found = []
        for each in self.gathering.found.values():
            change = next((part.change for part in each.judged if part.change), None)
            if change:
                found.append(replace(change, kind=each.kind.kind, name=each.name))
        return sorted(found, key=lambda each: (each.namespace, each.kind, each.name))

    async def _judged(self, document: Document) -> _Judged:
        old, new = [await ruled_under(document, facts(document), policy) for facts, policy in self._ways]
        concerned = any(each.ruling.verdict is not VerdictName.LEFT_ALONE for each in (old, new))
        return _Judged(concerned, change_of(document, old, new))


def both(old: TierPolicy, new: TierPolicy) -> TierPolicy:
    """A policy that knows the kinds and counts the GPUs of both: what either leaves alone is read too."""
    others = tuple(row for row in old.kinds.rows if row.group_kind not in new.kinds.by_kind)
    return replace(
        new,
        kinds=new.kinds.with_rows(others),
        resources=(*old.resources, *new.resources),
        device_classes=(*old.device_classes, *new.device_classes),
        shares=tuple(dict.fromkeys((*old.shares, *new.shares))),
    )
