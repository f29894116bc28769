"""The account of a history: whether more was stored than a tenant may use, or than its status accounted for."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from webhook.objects.pods import QUOTA_GATE

from .history import Change
from .plan import Plan, Team

Tree = dict[str, Any]

FINISHED = ("Succeeded", "Failed")
LINES = 60


@dataclass
class Book:
    """One tenant's pods at one instant after another."""

    team: Team
    pods: dict[str, tuple[str, int]] = field(default_factory=dict)
    charged: dict[str | None, int] = field(default_factory=dict)
    over_admitted: int = 0
    """The most that was ever stored beyond a row."""
    uncharged: int = 0
    """The most that was ever stored beyond used and reserved in the status of that instant, if it was sealed."""
    changes: list[str] = field(default_factory=list)
    """All of them in words; `worst` is the number of the one that was the worst."""
    worst: int = 0

    def story(self) -> list[str]:
        """The changes before the worst one, else the last ones."""
        end = self.worst or len(self.changes)
        return self.changes[max(end - LINES, 0) : end]

    def stored(self, row: str | None) -> int:
        """GPUs of the pods that exist on a row."""
        return sum(gpus for tier, gpus in self.pods.values() if row in (None, tier))

    def pod(self, change: Change) -> None:
        """A pod was created, changed or deleted."""
        before = self.pods.pop(change.key, None)
        if change.stored and _holds(change.stored):
            self.pods[change.key] = gpus_of_pods(change.stored)
        if before == self.pods.get(change.key):
            return
        tier, gpus = before or self.pods[change.key]
        what = "is gone" if before else "is stored"
        self._tell(f"{change.revision} pod {'/'.join(change.place)} of {gpus} on {tier} {what}")
        self._look()

    def status(self, change: Change) -> None:
        """The tenant's status changed."""
        status = (change.stored or {}).get("status", {})
        ledger = status.get("ledger", {})
        rows = status.get("usage", ()) if ledger.get("seal") else ()
        self.charged = {row.get("tier"): int(row["used"]) + int(row["reserved"]) for row in rows}
        details = f"{ledger.get('term')} {ledger.get('namespaces')} reservations {len(ledger.get('reservations', ()))}"
        self._tell(f"{change.revision} status {status.get('summary', '')}, {details}")
        self._look()

    def _tell(self, line: str) -> None:
        now = ", ".join(f"{row or 'total'} {self.stored(row)}/{hard}" for row, hard in self.team.rows.items())
        self.changes.append(f"{line}; stored {now}")

    def _look(self) -> None:
        over = max(self.stored(row) - hard for row, hard in self.team.rows.items())
        uncharged = max((self.stored(row) - charged for row, charged in self.charged.items()), default=0)
        if over > self.over_admitted or uncharged > self.uncharged:
            self.worst = len(self.changes)
        self.over_admitted = max(self.over_admitted, over)
        self.uncharged = max(self.uncharged, uncharged)


def books(plan: Plan, changes: Iterable[Change]) -> list[Book]:
    """A book for each tenant of a plan, all changes entered."""
    made = {team.name: Book(team) for team in plan.teams}
    by_namespace = {namespace: made[team.name] for team in plan.teams for namespace in team.namespaces}
    for change in changes:
        namespace, name = change.place
        if namespace == "tenantquotas" and name in made:
            made[name].status(change)
        elif namespace in by_namespace:
            by_namespace[namespace].pod(change)
    return list(made.values())


def usage_of(plan: Plan, pods: Iterable[Tree]) -> dict[str, Counter[str | None]]:
    """Return the GPUs that a list of pods uses, by tenant and row."""
    found: dict[str, Counter[str | None]] = {team.name: Counter() for team in plan.teams}
    for pod in filter(_holds, pods):
        tier, gpus = gpus_of_pods(pod)
        for row in (None, tier):
            found[plan.team_of(pod["metadata"]["namespace"]).name][row] += gpus
    return found


def _holds(pod: Tree) -> bool:
    """Return whether it uses GPUs: no longer once it has finished, or is deleted with no time to go on."""
    metadata = pod["metadata"]
    ends_now = "deletionTimestamp" in metadata and not metadata.get("deletionGracePeriodSeconds")
    return not ends_now and pod["status"].get("phase") not in FINISHED and not is_gated(pod)


def is_gated(pod: Tree) -> bool:
    return any(each["name"] == QUOTA_GATE for each in pod["spec"].get("schedulingGates", ()))


def gpus_of_pods(pod: Tree) -> tuple[str, int]:
    """The tier of a pod, and its GPUs."""
    limits = (each["resources"]["limits"] for each in pod["spec"]["containers"])
    return pod["metadata"]["labels"]["gpu-tiers.dev/tier"], sum(int(each["nvidia.com/gpu"]) for each in limits)


def differences(plan: Plan, quotas: Iterable[Tree], pods: Iterable[Tree]) -> Iterator[str]:
    """Yield where a status differs from a list of the pods."""
    usage = usage_of(plan, pods)
    for quota in quotas:
        name = quota["metadata"]["name"]
        for row in quota.get("status", {}).get("usage", ()) if name in usage else ():
            said = f"{row['used']} used and {row['reserved']} reserved"
            stored = usage[name][row.get("tier")]
            if said != f"{stored} used and 0 reserved":
                yield f"{name} {row.get('tier', 'total')}: {said}, {stored} stored"
