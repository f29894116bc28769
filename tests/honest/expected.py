"""Bounds for each row of a quota, counted from the objects that exist.

`low` is what pods hold that run or may run. `high` adds all that may be reserved: whole gangs, creates that were
admitted and lost, preempted pods beside their replacements. Whoever is refused, demoted or told that there is no room,
while even `high` leaves room, has been wronged.
"""

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain

from tests.honest.api import Api
from tests.honest.asks import Ask, Bounds, Flavors, Lost, Part, Row, job_pods
from tests.honest.objects import (
    FLAVOR_LABEL,
    GANGS,
    KINDS,
    NODES,
    PODGROUPS,
    PODS,
    TENANT_LABEL,
    WITHOUT_PODS,
    Tree,
    claim_shared,
    controller_of,
    flavor_named,
    gpus_of,
    group_named,
    group_number,
    is_active,
    is_deleting,
    is_finished,
    is_gated,
    is_made_by,
    is_suspended,
    is_terminal,
    key_of,
    least_of,
    tier_of,
    uid_of,
    waits_for_kueue,
)
from tests.ledger.simulated_api import NAMESPACES, TENANT_QUOTAS
from tests.ledger.virtual_time import loop

QUEUED = "reserved for pods queued earlier"
WINDOW = 3.0
"""Seconds: room counts only where it was there for so long, because watches lag."""


class Expected:
    """Counts by the objects of an API server. The oracle tells it what objects don't say."""

    def __init__(self, api: Api, flavors: Flavors) -> None:
        self.api = api
        self.flavors = flavors
        self.deleted_at: dict[str, float] = {}
        self.leads_since = float("-inf")
        """When the latest leader began at the latest. It counts the time of a pod in deletion from then on."""
        self.replacements: dict[str, str] = {}
        """Of preempted pods: the uid of the pod that was made instead."""
        self.lost: list[Lost] = []
        self.ended: list[Lost] = []
        """Pods of controllers that were deleted where the quota holds: their next ones may stand in their slots."""
        self.admitted: dict[str, list[Ask]] = {}
        """Gangs of which pods were admitted, with what they asked for then."""
        self.reviewed: set[str] = set()
        """Gangs whose own review admitted them whole: no Hold."""
        self.in_review: list[Tree] = []
        """Objects whose create is under way: they may be booked, and nobody can see them."""
        self._log: defaultdict[str, deque[tuple[float, Mapping[str, Bounds]]]] = defaultdict(deque)
        self._cached: dict[str, tuple[object, Mapping[str, Bounds]]] = {}

    # --- tenants

    def quota(self, tenant: str) -> Tree:
        return self.api.find(TENANT_QUOTAS, ("", tenant)) or {"metadata": {}, "spec": {}}

    def tenants(self) -> list[str]:
        return [each["metadata"]["name"] for each in self.api.all(TENANT_QUOTAS)]

    def rows(self, tenant: str) -> list[Row]:
        rows = self.quota(tenant)["spec"].get("quotas", ())
        return [
            Row(each.get("tier"), each.get("resourceFlavor"), int(each["gpus"]), each.get("onExceed") == "Hold")
            for each in rows
        ]

    def spent(self, tenant: str) -> list[Row]:
        """Return a row for each budget whose hours are used up, as the leader has noted them."""
        tree = self.quota(tenant)
        noted = (tree.get("status") or {}).get("budgets", ())
        actions = {each.get("tier"): each["onExhausted"] for each in tree["spec"].get("budgets", ())}
        over = (each for each in noted if float(each["usedGpuSeconds"]) >= 3600 * float(each["gpuHours"]))
        found = ((each.get("tier"), actions.get(each.get("tier"), "Warn")) for each in over)
        return [Row(tier, None, 0, action == "Hold") for tier, action in found if action != "Warn"]

    def are_hours_left(self, tenant: str, asked: Iterable[Ask]) -> bool:
        """Tells whether no budget that is used up counts this."""
        asked = list(asked)
        return not any(row.sum(asked) for row in self.spent(tenant))

    def holds_back(self, tenant: str) -> bool:
        """Tells whether pods wait for room on some row of a tenant."""
        budgets = self.quota(tenant)["spec"].get("budgets", ())
        queues = any(row.has_queue for row in self.rows(tenant)) or any(e["onExhausted"] == "Hold" for e in budgets)
        return self.on_exceed(tenant) == "Hold" or queues

    def would_wait(self, tenant: str, asked: list[Ask]) -> bool:
        """Tells whether some of this waits where there is no room, because a row on which it counts has a queue."""
        rows = [row for row in (*self.rows(tenant), *self.spent(tenant)) if row.sum(asked)]
        return self.on_exceed(tenant) == "Hold" or any(row.has_queue for row in rows)

    def on_exceed(self, tenant: str) -> str:
        return str(self.quota(tenant)["spec"].get("onExceed", "Deny"))

    def tenant_of(self, namespace: str) -> str | None:
        tree = self.api.find(NAMESPACES, ("", namespace))
        label = tree["metadata"]["labels"].get(TENANT_LABEL) if tree else None
        return next((each for each in self.tenants() if label and self._selects(each) == label), None)

    def namespaces(self, tenant: str) -> set[str]:
        label = self._selects(tenant)
        found = self.api.all(NAMESPACES)
        return {each["metadata"]["name"] for each in found if each["metadata"]["labels"].get(TENANT_LABEL) == label}

    def pods(self, tenant: str) -> list[Tree]:
        here = self.namespaces(tenant)
        return [each for each in self.api.all(PODS) if each["metadata"]["namespace"] in here]

    def _selects(self, tenant: str) -> object:
        selector = self.quota(tenant)["spec"].get("namespaceSelector", {"matchLabels": {}})
        return selector["matchLabels"].get(TENANT_LABEL, "nobody")

    # --- pods and gangs

    def ask_of(self, pod: Tree) -> Ask:
        shared = claim_shared(pod)
        namespace = pod["metadata"].get("namespace", "")
        return Ask(tier_of(pod), self._flavors_of(pod), gpus_of(pod), f"{namespace}/{shared}" if shared else "")

    def _flavors_of(self, tree: Tree) -> Flavors:
        node = self.api.find(NODES, ("", tree["spec"].get("nodeName", "")))
        if node:
            label = node["metadata"].get("labels", {}).get(FLAVOR_LABEL)
            return (label,) if label else ()
        named = flavor_named(tree)
        if waits_for_kueue(tree) and not named:
            return ()  # Kueue has not chosen yet
        return (named,) if named else self.flavors

    def holds(self, pod: Tree) -> bool:
        """Tells whether a pod uses GPUs: one in deletion does until twice its grace period is over."""
        if is_terminal(pod) or is_gated(pod) or not gpus_of(pod):
            return False
        if not is_deleting(pod):
            return True
        return loop().time() < self.deleted_at.get(uid_of(pod), loop().time()) + _release_seconds(pod)

    def may_count(self, pod: Tree) -> bool:
        """Tells whether a leader that saw the deletion of a pod late, or began after it, may still count the pod."""
        used = is_deleting(pod) and gpus_of(pod) and not is_terminal(pod) and not is_gated(pod)
        seen = max(self.leads_since, self.deleted_at.get(uid_of(pod), 0) + 2)
        return bool(used) and not self.holds(pod) and loop().time() < seen + _release_seconds(pod)

    def owners_of(self, tree: Tree) -> list[Tree]:
        """Return the objects above one, from the inside."""
        found, seen, namespace = [], tree, tree["metadata"]["namespace"]
        while (controller := controller_of(seen)) is not None and controller["kind"] in KINDS:
            above = self.api.find(KINDS[controller["kind"]], (namespace, controller["name"]))
            if above is None or uid_of(above) != controller["uid"]:
                break
            found.append(above)
            seen = above
        return found

    def goes_with_owner(self, tree: Tree) -> bool:
        """Tells whether an object names an owner, near or far, that is gone: it will be deleted too."""
        return controller_of((self.owners_of(tree) or [tree])[-1]) is not None

    def gang_of(self, tree: Tree) -> Tree | None:
        """Return the outermost gang above an object, else the PodGroup that a pod names.

        Each further group of a LeaderWorkerSet is a gang of its own.
        """
        above = next((each for each in reversed(self.owners_of(tree)) if each["kind"] in GANGS), None)
        if above is not None and tree["kind"] == "Pod" and group_number(tree):
            return _group(above, group_number(tree))
        named = group_named(tree) if above is None and tree["kind"] == "Pod" else ""
        return self.api.find(PODGROUPS, (tree["metadata"]["namespace"], named)) if named else above

    def gangs(self) -> Iterator[Tree]:
        """Yield all gangs, with the further groups of LeaderWorkerSets that have pods."""
        for kind in GANGS:
            yield from self.api.all(KINDS[kind])
        found = (self.gang_of(each) for each in self.api.all(PODS) if group_number(each))
        yield from {uid_of(each): each for each in found if each is not None}.values()

    def group_of(self, pod: Tree) -> Tree | None:
        """Return the group that is booked with the first of its pods; None for a pod of no group."""
        return self.gang_of(pod) if group_named(pod) or group_number(pod) else None

    def booked_with(self, pod: Tree, one: Ask) -> list[Ask]:
        """Return what is booked with a pod: with the first pod of a group all that the group needs."""
        group = self.group_of(pod)
        if group is None or one.claim or uid_of(group) in self.admitted:
            return [one]
        if group["kind"] == "PodGroup":
            return [replace(one, gpus=one.gpus * least_of(group))]
        return [replace(each, tier=one.tier) for each in self.whole_of(group)] or [one]

    def _members(self, group: Tree) -> list[Tree]:
        """Return the pods that name a PodGroup."""
        namespace, name = key_of(group)
        here = (each for each in self.api.all(PODS) if each["metadata"]["namespace"] == namespace)
        return [each for each in here if group_named(each) == name]

    def pods_of(self, gang: Tree) -> list[Tree]:
        found = ((each, self.gang_of(each)) for each in self.api.all(PODS))
        return [each for each, above in found if above is not None and uid_of(above) == uid_of(gang)]

    def parts(self, tree: Tree) -> list[Part]:
        """Return the pods that a workload asks for now."""
        spec, kind = tree["spec"], tree["kind"]
        if is_suspended(tree):
            return []
        if kind == "CronJob":
            spec = spec["jobTemplate"]["spec"]
        if kind in WITHOUT_PODS:
            return []
        if kind in ("Job", "CronJob"):
            return self._parts((spec["template"], job_pods(spec, _succeeded(tree))))
        if kind in GANGS:
            return self.declared(tree, fully=True, single=True)
        if kind == "Pod":
            return self._parts((tree, 1))
        return self._parts((spec["template"], spec.get("replicas", 1)))

    def declared(self, tree: Tree, *, fully: bool = False, single: bool = False) -> list[Part]:
        """Return the pods without which a gang can't run: nothing where that is one pod, unless `single`.

        `fully`: an elastic one with all that it asks for.
        """
        spec, kind = tree["spec"], tree["kind"]
        if kind == "PodGroup":
            members = [each for each in self._members(tree) if not is_terminal(each)]
            first = {**members[0], "spec": {**members[0]["spec"], "nodeName": ""}} if members else {}
            templates = [(first, spec["schedulingPolicy"]["gang"]["minCount"])] if members else []
        elif kind == "LeaderWorkerSet":
            group, replicas = spec["leaderWorkerTemplate"], spec["replicas"]
            replicas, leader = replicas if fully else min(replicas, 1), group.get("leaderTemplate")
            templates = [(leader, replicas)] if leader else []
            templates.append((group["workerTemplate"], replicas * (group["size"] - len(templates))))
        elif kind == "Job":
            templates = [(spec["template"], job_pods(spec, _succeeded(tree)))]
        elif kind == "JobSet":
            jobs = [(each["template"]["spec"], each["replicas"]) for each in spec["replicatedJobs"]]
            templates = [(job["template"], replicas * job_pods(job)) for job, replicas in jobs]
        else:
            least = None if fully else spec.get("elasticPolicy", {}).get("minReplicas")
            roles = spec["pytorchReplicaSpecs"].values()
            templates = [(e["template"], e["replicas"] if least is None else min(least, e["replicas"])) for e in roles]
        found = self._parts(*templates)
        return found if single or sum(each.count for each in found) > 1 else []

    def _parts(self, *templates: tuple[Tree, int]) -> list[Part]:
        return [Part(self.ask_of(each), count) for each, count in templates if gpus_of(each) and count]

    def whole_of(self, gang: Tree) -> list[Ask]:
        return [each.whole for each in self.declared(gang)]

    def is_gang_now(self, tree: Tree) -> bool:
        """Tells whether a workload is charged as a whole."""
        if is_suspended(tree) or is_finished(tree):
            return False
        return bool(self.declared(tree)) and self.gang_of(tree) is None

    def gpus_of_pods(self, tree: Tree) -> list[Ask]:
        """Return what the pods of a workload hold."""
        mine = (each for each in self.api.all(PODS) if is_made_by(each, uid_of(tree)))
        return [self.ask_of(each) for each in mine if self.holds(each)]

    # --- bounds

    def state(self, tenant: str) -> object:
        """Return what tells one state of a tenant from another."""
        time_counts = bool(self.lost or self.ended) or any(map(is_deleting, self.api.all(PODS)))
        return (
            self.api.versions(TENANT_QUOTAS),
            self.quota(tenant)["metadata"].get("generation"),
            int(loop().time()) if time_counts else 0,
            len(self.admitted),
            len(self.reviewed),
            len(self.replacements),
            tuple(map(id, self.in_review)),
        )

    def bounds(self, tenant: str) -> Mapping[str, Bounds]:
        """Return the bounds of each row, by its label."""
        key = self.state(tenant)
        if self._cached.get(tenant, (None,))[0] != key:
            self._cached[tenant] = key, self._count(tenant)
        return self._cached[tenant][1]

    def _count(self, tenant: str) -> Mapping[str, Bounds]:
        here, now = self.namespaces(tenant), loop().time()
        members, alone = defaultdict[str, list[Tree]](list), list[Tree]()
        for pod in self.pods(tenant):
            if self.holds(pod):
                gang = self.gang_of(pod)
                (members[uid_of(gang)] if gang and self.is_gang_now(gang) else alone).append(pod)
        gangs = [each for each in self.gangs() if each["metadata"]["namespace"] in here and self.is_gang_now(each)]
        late = [self.ask_of(each) for each in self.pods(tenant) if self.may_count(each)]
        coming = [ask for each in self.in_review if each["metadata"]["namespace"] in here for ask in self._booked(each)]
        found = {}
        for row in self.rows(tenant):
            low = row.sum(map(self.ask_of, chain(alone, *members.values())))  # a claim counts once, whoever shares it
            high = row.sum(map(self.ask_of, alone)) + row.sum(late) + row.sum(coming)
            for pod in (*alone, *(each for pods in members.values() for each in pods)):
                low -= row.sum([self.ask_of(pod)]) if uid_of(pod) in self.replacements else 0
            for gang in gangs:
                mine = members.get(uid_of(gang), [])
                total = row.sum(map(self.ask_of, mine))
                reserved = self._reserved_for(gang, mine)
                high += max(total, row.sum(reserved))
                if not mine and row.tier and self.on_exceed(tenant) == "Demote":  # to which tier no pod shows yet
                    others = [replace(each, tier=row.tier) for each in reserved if each.tier != row.tier]
                    high += row.sum(others)
            high += row.sum(each.ask for each in self.ended if each.until > now and each.namespace in here)
            lost = [each for each in self.lost if each.until > now and each.namespace in here]
            slots = high + row.sum(self._in_slots(lost))
            found[row.label] = Bounds(max(low, 0), high + row.sum(each.ask for each in lost), slots)
        return found

    def _booked(self, tree: Tree) -> list[Ask]:
        """Return what the review of an object books; nothing where a gang above it has that reserved."""
        if tree["kind"] != "Pod":
            return self.whole_of(tree) if tree["kind"] in GANGS and self.is_gang_now(tree) else []
        gang = self.gang_of(tree)
        if gang is not None and uid_of(gang) in {*self.admitted, *self.reviewed}:
            return []
        return self.booked_with(tree, self.ask_of(tree)) if gpus_of(tree) else []

    def lost_of(self, controller: Tree | None) -> list[Ask]:
        """Return what the creates of a controller ask for that were refused after us."""
        mine = (each for each in self.lost if each.controller and each.until > loop().time())
        return [each.ask for each in mine if controller and each.controller == controller]

    def _in_slots(self, lost: list[Lost]) -> Iterator[Ask]:
        """Return what lost creates may hold, where those of a controller share the slots of its missing pods."""
        alone, by_controller = list[Ask](), defaultdict[str, list[Lost]](list)
        for each in lost:
            if each.is_over:
                continue
            if each.controller is None:
                alone.append(each.ask)
            else:
                by_controller[each.controller["uid"]].append(each)
        yield from alone
        for mine in by_controller.values():
            controller, namespace = mine[0].controller or {}, mine[0].namespace
            made_by = self.api.find(KINDS[controller["kind"]], (namespace, controller["name"]))
            if made_by is None or uid_of(made_by) != controller["uid"]:
                yield from (each.ask for each in mine)
                continue
            gang = self.gang_of(made_by) or made_by
            if gang["kind"] in GANGS and self.is_gang_now(gang):
                continue  # its slot has room for all
            wanted = sum(each.count for each in self.parts(made_by))
            there = sum(not is_terminal(each) and is_made_by(each, uid_of(made_by)) for each in self.api.all(PODS))
            yield from [each.ask for each in mine][: max(wanted - there, 0)]

    def _reserved_for(self, gang: Tree, mine: list[Tree]) -> list[Ask]:
        """Return what an admitted gang may have reserved. A demoted one runs at the tier of its pods."""
        uid = uid_of(gang)
        admitted = uid in self.reviewed or uid in self.admitted or not all(map(is_deleting, mine))
        # One whose leader asks for no GPU shows by it that it is admitted.
        admitted = admitted or any(is_active(each) and not is_gated(each) for each in self.pods_of(gang))
        if is_deleting(gang) or not admitted:
            return []
        whole = self.whole_of(gang)
        if mine and len({each.tier for each in whole}) == 1:
            return [replace(each, tier=tier_of(mine[0])) for each in whole]
        return whole

    def note(self) -> None:
        """Remember the bounds: once a second, and at each review."""
        now = loop().time()
        self.ended = [each for each in self.ended if each.until > now]
        for tenant in self.tenants():
            log = self._log[tenant]
            log.append((now, self.bounds(tenant)))
            while log[0][0] < now - 2 * WINDOW:
                log.popleft()

    def lately(self, tenant: str, seconds: float = WINDOW) -> Mapping[str, Bounds]:
        """Return the least and the most that each row may have used within these seconds."""
        self.note()
        found: dict[str, Bounds] = {}
        for when, bounds in self._log[tenant]:
            for label, each in bounds.items() if when >= loop().time() - seconds else ():
                before = found.get(label, each)
                found[label] = Bounds(
                    min(before.low, each.low), max(before.high, each.high), max(before.slots, each.slots)
                )
        return found

    def has_room(self, tenant: str, asked: Iterable[Ask], freed: Iterable[Ask] = (), *, by_slots: bool = False) -> bool:
        """Tells whether all rows had room for a while, whoever counts; `freed` is about to end."""
        asked, freed, most = list(asked), list(freed), self.lately(tenant)
        if not self.are_hours_left(tenant, asked):
            return False
        for row in self.rows(tenant):
            bounds = most.get(row.label, Bounds(0, 0, 0))
            high, gpus = bounds.slots if by_slots else bounds.high, row.sum(asked)
            if gpus and high - row.sum(freed) + gpus > row.hard:
                return False
        return True

    def is_reserved_for_queue(self, tenant: str, sentence: str) -> bool:
        """Tells whether a sentence says that GPUs are reserved for the queue, and somebody is in it."""
        return QUEUED in sentence and any(map(is_gated, self.pods(tenant)))

    def has_room_now(self, tenant: str, asked: list[Ask]) -> bool:
        bounds, rows = self.bounds(tenant), self.rows(tenant)
        has_room = all(bounds[row.label].high + row.sum(asked) <= row.hard for row in rows if row.sum(asked))
        return has_room and self.are_hours_left(tenant, asked)

    def fits_ever(self, tenant: str, asked: Iterable[Ask], *, any_tier: bool = False) -> bool:
        asked = list(asked)
        return all(row.sum(asked) <= row.hard for row in self.rows(tenant) if not (any_tier and row.tier))


def _group(workload: Tree, number: int) -> Tree:
    """Return a group of a LeaderWorkerSet as if it were one of its own."""
    metadata = workload["metadata"]
    own = {"uid": f"{metadata['uid']}/{number}", "name": f"{metadata['name']}-{number}"}
    return {**workload, "metadata": {**metadata, **own}}


def _release_seconds(pod: Tree) -> float:
    return 2 * float(pod["metadata"].get("deletionGracePeriodSeconds", 30))


def _succeeded(job: Tree) -> int:
    return int(job.get("status", {}).get("succeeded", 0))
