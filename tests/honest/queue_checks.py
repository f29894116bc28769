"""Judges the queue: who waits with room, and who is overtaken."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from tests.honest.asks import Ask, missing
from tests.honest.calm import Calm
from tests.honest.clocks import START
from tests.honest.expected import Expected
from tests.honest.gang_checks import GangChecks
from tests.honest.objects import (
    GANG,
    KINDS,
    PODS,
    WORKLOAD_GANGS,
    Key,
    Tree,
    controller_of,
    gpus_of,
    group_number,
    is_active,
    is_deleting,
    is_finished,
    is_gated,
    is_terminal,
    key_of,
    seconds_of,
    tier_of,
    uid_of,
)
from tests.honest.report import Report
from tests.ledger.virtual_time import loop

VALUES = {"gpu-training": 1000, "gpu-serving": 800, "gpu-batch": 400, "gpu-interactive": 200}
REPLACED_SECONDS = 130.0
"""So long after the end of a pod its workload may pass others: the next one takes its slot."""


@dataclass(frozen=True)
class Unit:
    """A pod or a gang that waits. `needs`: beyond what it has already; `whole`: in all."""

    uid: str
    tier: str
    created: str
    needs: list[Ask]
    whole: list[Ask]
    tree: Tree


class QueueChecks:
    def __init__(self, expected: Expected, gangs: GangChecks, calm: Calm, report: Report) -> None:
        self.ended_at: defaultdict[str, list[float]] = defaultdict(list)
        """By the uid of the outermost workload: when pods ended."""
        self._expected = expected
        self._gangs = gangs
        self._calm = calm
        self._report = report
        self._gated: dict[str, Key] = {}
        self._waits: dict[str, float] = {}
        self._judged: dict[str, tuple[object, list[Unit]]] = {}

    def tick(self) -> None:
        """Look at the queues, once a second."""
        expected, now = self._expected, loop().time()
        if not self._gated and not any(map(is_gated, expected.api.all(PODS))):
            self._waits = {}
            return
        self._check_order()
        waiting = {}
        for tenant in expected.tenants():
            for unit in self.without_reason(tenant):
                since = waiting[unit.uid] = self._waits.get(unit.uid, now)
                if now - since > self._calm.patience() and self._calm.is_settled():
                    subject, name = f"{expected.on_exceed(tenant)} {unit.tree['kind']}", unit.tree["metadata"]["name"]
                    details = {"needs": unit.needs, "bounds": expected.bounds(tenant), "since": since - START}
                    self._report.fail("waits with room", subject, name=name, **details)
                    waiting[unit.uid] = float("inf")
        self._waits = waiting

    def without_reason(self, tenant: str) -> list[Unit]:
        """Return those who wait though they have room, and nobody before them reserves it."""
        state = self._expected.state(tenant), len(self._gangs.in_part)
        if self._judged.get(tenant, (None,))[0] != state:
            self._judged[tenant] = state, self._without_reason(tenant)
        return self._judged[tenant][1]

    def _without_reason(self, tenant: str) -> list[Unit]:
        expected, units = self._expected, list(self.units(tenant))
        bounds, rows = expected.bounds(tenant), expected.rows(tenant)
        strict = expected.quota(tenant)["spec"].get("holdOrder", "Strict") == "Strict"

        def fits(asked: list[Ask]) -> bool:
            has_room = all(bounds[row.label].high + row.sum(asked) <= row.hard for row in rows if row.sum(asked))
            return has_room and expected.are_hours_left(tenant, asked)

        def labels(asked: list[Ask]) -> set[str]:
            return {row.label for row in rows if row.sum(asked)}

        def reserves(other: Unit, unit: Unit) -> bool:
            before = other is not unit and VALUES[other.tier] >= VALUES[unit.tier]
            waits = before and not fits(other.needs) and expected.fits_ever(tenant, other.whole)
            return waits and bool(labels(other.whole) & labels(unit.whole))

        if strict and self.orphans(tenant):  # after a minute they have turns of their own, and reserve
            return []
        free = [each for each in units if fits(each.needs)]
        return [each for each in free if not (strict and any(reserves(other, each) for other in units))]

    def units(self, tenant: str) -> Iterator[Unit]:
        expected, gangs = self._expected, dict[str, tuple[Tree, list[Tree]]]()
        for pod in expected.pods(tenant):
            if not is_gated(pod) or not is_active(pod) or self._waits_for_deleted(pod):
                continue
            gang, one = expected.gang_of(pod), [expected.ask_of(pod)]
            if gang is not None and expected.is_gang_now(gang):
                gangs.setdefault(uid_of(gang), (gang, []))[1].append(pod)
            elif gpus_of(pod):
                yield Unit(uid_of(pod), tier_of(pod), pod["metadata"]["creationTimestamp"], one, one, pod)
        for uid, (gang, pods) in gangs.items():
            if uid not in self._gangs.in_part and any(map(gpus_of, pods)):
                tier = min((tier_of(each) for each in pods), key=lambda each: VALUES[each])
                created = min(each["metadata"]["creationTimestamp"] for each in pods)
                needs = self._needs_of(gang, pods)
                yield Unit(uid, tier, created, needs, expected.whole_of(gang), gang)

    def is_waiting(self, pod: Tree, tenant: str) -> bool:
        """Tells whether a pod is in the queue, by itself or with its gang."""
        gang = self._expected.gang_of(pod)
        uids = {uid_of(pod), *([uid_of(gang)] if gang else ())}
        return any(each.uid in uids for each in self.units(tenant)) and not self._goes_with_owner(pod)

    def orphans(self, tenant: str) -> int:
        """Return how many pods wait that were left behind by a gang that was deleted without them."""
        return sum(is_gated(pod) and self._waits_for_deleted(pod) for pod in self._expected.pods(tenant))

    def _waits_for_deleted(self, pod: Tree) -> bool:
        """Tells whether a pod was left behind by a gang that was deleted without it: it waits a minute."""
        mark, api = pod["metadata"].get("annotations", {}).get(GANG), self._expected.api
        return mark is not None and not any(
            mark.partition("/")[0] == uid_of(each) for kind in WORKLOAD_GANGS for each in api.all(KINDS[kind])
        )

    def _needs_of(self, gang: Tree, gated: list[Tree]) -> list[Ask]:
        """Return what a gang needs beyond what it has; once admitted it needs nothing, or one more pod."""
        expected, uid = self._expected, uid_of(gang)
        whole, pods = expected.whole_of(gang), expected.pods_of(gang)
        if uid not in expected.admitted:
            return missing(whole, [expected.ask_of(each) for each in pods if expected.holds(each)])
        live = sum(not is_terminal(each) for each in pods)
        if live > sum(each.count for each in expected.declared(gang)):
            return [expected.ask_of(gated[0])]
        return missing(whole, expected.admitted[uid])

    # --- order

    def outermost(self, tree: Tree) -> str:
        """Return the uid of the outermost workload that a pod names, also of one that is gone."""
        last = (self._expected.owners_of(tree) or [tree])[-1]
        controller = controller_of(last)
        return str(controller["uid"]) if controller else uid_of(last)

    def queued_as(self, tree: Tree) -> str:
        """Return the uid under which an object stands in the queue: a further group has its own place."""
        number = group_number(tree) if tree["kind"] == "Pod" else 0
        return f"{self.outermost(tree)}/{number}" if number else self.outermost(tree)

    def age(self, tree: Tree) -> str:
        """Return when the workload of a gang or of a Job was created; a pod of what scales has an age of its own."""
        above, gang = [tree, *self._expected.owners_of(tree)], self._expected.gang_of(tree)
        if tree["kind"] == "Pod" and (gang is None or not self._expected.is_gang_now(gang)):
            above = above[:2]  # a LeaderWorkerSet of single pods scales as a Deployment does
        found = [each for each in above if each["kind"] in WORKLOAD_GANGS]
        return str((found or [tree])[-1]["metadata"]["creationTimestamp"])

    def _check_order(self) -> None:
        """Check that a pod that is opened before an older one of its tier and row has a reason."""
        api = self._expected.api
        gated = {uid_of(pod): key_of(pod) for pod in api.all(PODS) if is_gated(pod) and not is_deleting(pod)}
        now = {uid: api.find(PODS, key) for uid, key in self._gated.items() if uid not in gated}
        opened = [pod for uid, pod in now.items() if pod and uid_of(pod) == uid and not is_deleting(pod)]
        for pod in opened:
            self._check_opened(pod, {uid_of(each) for each in opened})
        self._gated = gated

    def _check_opened(self, pod: Tree, opened: set[str]) -> None:
        expected, now = self._expected, loop().time()
        tenant = expected.tenant_of(pod["metadata"]["namespace"])
        spec = expected.quota(tenant)["spec"] if tenant else {}
        in_order = spec.get("onExceed") == "Hold" and spec.get("holdOrder", "Strict") == "Strict"
        if tenant is None or not in_order or "reserveSeconds" in spec or not gpus_of(pod):
            return
        if not (self._calm.is_quiet() and self._calm.has_same_quota(tenant, 20)):
            return
        if any(now - ended < REPLACED_SECONDS for ended in self.ended_at[self.outermost(pod)]):
            return
        claim = expected.ask_of(pod).claim
        others = [each for each in expected.pods(tenant) if expected.holds(each) and uid_of(each) != uid_of(pod)]
        if claim and any(expected.ask_of(each).claim == claim for each in others):
            return  # it adds nothing to what they use of the claim that they share
        gang = expected.gang_of(pod)
        since = pod["metadata"]["creationTimestamp"]
        if gang is not None and ({uid_of(gang)} & (self._gangs.in_part | self._gangs.grown)):
            return
        if gang is not None and expected.is_gang_now(gang):
            mates = expected.pods_of(gang)
            if any(not is_gated(each) and uid_of(each) not in opened and not is_terminal(each) for each in mates):
                return  # it draws on what its gang has
            since = min(each["metadata"]["creationTimestamp"] for each in mates)
        for unit in self.units(tenant):
            if self._is_overtaken(unit, pod, since, tenant):
                younger = (controller_of(pod) or {}).get("kind")
                subject = f"{unit.tree['kind']} by {pod['kind']} of {younger}"
                names = {"older": unit.tree["metadata"]["name"], "younger": pod["metadata"]["name"]}
                self._report.fail("overtaken by a younger one of its tier", subject, **names, needs=unit.needs)

    def _is_overtaken(self, unit: Unit, pod: Tree, since: str, tenant: str) -> bool:
        expected = self._expected
        if unit.uid in self._gangs.in_part | self._gangs.grown or unit.tier != tier_of(pod) or not unit.needs:
            return False
        if self._goes_with_owner(unit.tree):
            return False
        mates = [each for each in expected.pods_of(unit.tree) if not is_terminal(each)]
        stamps = [each["metadata"]["creationTimestamp"] for each in mates if unit.tree["kind"] != "Pod"]
        latest = max(stamps, default=unit.created if unit.tree["kind"] == "Pod" else "")
        if not latest or latest >= since or seconds_of(since) - seconds_of(latest) < 2:
            return False
        if self.age(unit.tree) >= self.age(pod):
            return False  # by the age of its workload it is no older
        mine, bounds = [expected.ask_of(pod)], expected.bounds(tenant)
        rows = expected.rows(tenant)
        shared = [row for row in rows if row.sum(mine) and row.sum(unit.whole)]
        labels = {row.label for row in shared}
        elsewhere = (row for row in rows if row.label not in labels and row.sum(unit.needs))
        before = [each for each in self.units(tenant) if self.age(each.tree) < self.age(unit.tree)]
        needs = [*unit.needs, *(ask for each in before for ask in each.needs)]  # of those, one may have it reserved
        if any(bounds[row.label].high + row.sum(needs) > row.hard for row in elsewhere):
            return False  # it waits for a row on which the younger one does not count
        return bool(shared) and expected.fits_ever(tenant, unit.whole)

    def _goes_with_owner(self, tree: Tree) -> bool:
        """Tells whether the owner of what waits is gone or has ended: it will be deleted."""
        controller = controller_of(tree)
        if controller is None:
            return False
        owners = self._expected.owners_of(tree)
        return not owners or is_finished(owners[0])
