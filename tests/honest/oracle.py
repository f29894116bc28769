"""The expectations of an honest user: the oracle watches a history as it goes and judges each answer.

Known weaknesses: calm.py has the seconds that it excuses. Under Hold it can't tell a pod whose GPUs are reserved from
one that waits.
"""

from collections.abc import Callable

from tests.honest.api import Api
from tests.honest.asks import Ask, Flavors, Lost, Row
from tests.honest.calm import NEWS_SECONDS, PREEMPTED_SECONDS, Calm
from tests.honest.command_checks import CommandChecks
from tests.honest.create_checks import CreateChecks
from tests.honest.expected import WINDOW, Expected
from tests.honest.gang_checks import GangChecks
from tests.honest.objects import (
    GANGS,
    KINDS,
    WORKLOAD_GANGS,
    Key,
    Tree,
    controller_of,
    flavor_named,
    gpus_of,
    is_deleting,
    is_gated,
    is_terminal,
    tier_of,
    uid_of,
)
from tests.honest.queue_checks import QueueChecks
from tests.honest.quiet_checks import judge_quiet
from tests.honest.replica import H
from tests.honest.report import Report
from tests.honest.requests import ApiServer, Reply
from tests.ledger.virtual_time import loop
from webhook.ledger.protocol import Ledger
from webhook.policy.values.tier_policy import TierPolicy

LOST_SECONDS = H + 12
"""So long a reservation may stand whose create was refused after us."""

SLOT_SECONDS = 7.0
"""The slot of a deleted pod may be reserved this long for the next one of its controller: 5 s, and the news."""


class Oracle:
    """Passes creates and updates on to the API server, and observes what happens (life.Observer)."""

    def __init__(self, api: Api, server: ApiServer, flavors: Flavors) -> None:
        self.report = Report()
        self.calm = Calm()
        self.expected = Expected(api, flavors)
        self._gangs = GangChecks(self.expected, self.calm, self.report)
        self._queue = QueueChecks(self.expected, self._gangs, self.calm, self.report)
        self._creates = CreateChecks(self.expected, self.calm, self.report)
        self._commands = CommandChecks(api, self.expected, self._queue, self.report)
        self._api = api
        self._server = server
        self._preempted: dict[str, tuple[Tree, float | None]] = {}
        """Preempted pods that had a controller, and when each was gone."""
        self._spent: dict[str, list[Row]] = {}

    async def create(self, tree: Tree) -> Reply:
        """Create an object for a controller or a person, and judge the answer."""
        expected, kind, metadata = self.expected, tree["kind"], tree["metadata"]
        tenant = expected.tenant_of(metadata["namespace"])
        self._note()
        preempted = self._replaced_by(tree) if kind == "Pod" else None
        in_booked_gang = kind == "Pod" and self._is_in_booked_gang(tree)
        expected.in_review.append(tree)
        reply = await self._server.create(tree)
        self._note_hours()
        expected.in_review.remove(tree)
        answer = f"{'yes' if reply.allowed else reply.code} {reply.sentence} {reply.warnings or ''}"
        name = metadata.get("name") or metadata.get("generateName")
        self.report.say(f"create {kind} {metadata['namespace']}/{name} -> {answer}")
        for each in reply.problems if self.calm.knows_tenants() else ():  # limits.NEW_TENANT
            if "demoted from" not in each:  # another pod has taken the room between the two
                self.report.fail("a second mutation changes something", each)
        if reply.lost and reply.tree is not None:
            self._note_lost(reply.tree)
        if tenant is None or reply.lost or reply.code in (409, 404):
            return reply
        if reply.allowed and reply.tree is not None:
            self._note_admitted(reply, tenant)
            self._note_unled(reply.tree)
            if preempted is not None:
                expected.replacements[uid_of(preempted)] = uid_of(reply.tree)
        in_booked_gang = in_booked_gang and self._is_in_booked_gang(tree)  # another may have come
        if kind == "Pod":
            self._creates.pod(tree, reply, tenant, preempted, in_booked_gang=in_booked_gang)
        else:
            self._creates.workload(tree, None, reply, tenant)
        self._creates.numbers(tree, reply, tenant)
        return reply

    async def update(self, kind: str, key: Key, change: Callable[[Tree], Tree], *, scale: bool = False) -> None:
        """Change a workload for a person, and judge the answer."""
        old = self._api.find(KINDS[kind], key)
        if old is None:
            return
        self._note()
        reply = await self._server.update(kind, key, change, scale=scale and kind != "Job")
        if reply.allowed:
            self._gangs.changed(uid_of(old), holds=bool(self.expected.gpus_of_pods(old)))
        answer = f"{'yes' if reply.allowed else reply.code} {reply.sentence} {reply.warnings or ''}"
        self.report.say(f"update {kind} {key[0]}/{key[1]} scale={scale} -> {answer}")
        tenant = self.expected.tenant_of(key[0])
        if tenant and reply.tree is not None:
            self._creates.workload(reply.tree, old, reply, tenant)
            self._creates.numbers(reply.tree, reply, tenant)
            if reply.allowed:
                self._note_admitted(reply, tenant)

    async def admit_for_kueue(self, pod: Tree) -> bool:
        """Lift Kueue's gate of a pod, with the flavor that it chooses, and judge the answer."""
        flavors = self.expected.flavors
        flavor = flavors[int(uid_of(pod).rpartition("-")[2]) % len(flavors)] if flavors else ""
        flavor = "" if flavor_named(pod) else flavor
        self._note()
        reply = await self._server.admit_for_kueue(pod, flavor)
        tenant, name = self.expected.tenant_of(pod["metadata"]["namespace"]), pod["metadata"]["name"]
        self.report.say(f"Kueue admits {name} to {flavor or 'any flavor'} -> {reply.code} {reply.sentence}")
        if tenant is not None:
            self._creates.moved(pod, flavor, reply, tenant)
        return reply.allowed

    def tick(self) -> None:
        """Judge what can be seen without a request, once a second."""
        self._note()
        self._judge_quotas()
        self._gangs.tick()
        self._queue.tick()

    def _judge_quotas(self) -> None:
        """Judge whether pods use more than a quota that never changed."""
        expected = self.expected
        for tenant in expected.tenants():
            exceed, bounds = expected.on_exceed(tenant), expected.bounds(tenant)
            if exceed == "Warn" or not self.calm.has_always_had_its_quota(tenant):
                continue
            # The replacement of a preempted pod may come before that pod has ended, and uses its GPUs only then.
            ending = [expected.ask_of(each) for each in expected.pods(tenant) if self._is_being_preempted(each)]
            for row in expected.rows(tenant):
                if bounds[row.label].low - row.sum(ending) > row.hard:
                    self.report.fail("more is used than the quota", f"{exceed} {row.label}", bounds=bounds)

    def _is_being_preempted(self, pod: Tree) -> bool:
        uid = uid_of(pod)
        return uid in self._preempted and uid not in self.expected.replacements and self.expected.holds(pod)

    async def ask_commands(self, policy: TierPolicy) -> None:
        """Ask the commands about what is there, in a quiet moment."""
        await self._commands.ask(policy)

    def judge_quiet(self, ledger: Ledger, when: str) -> None:
        judge_quiet(self.expected, self._queue, ledger, self.report, when)

    def _note(self) -> None:
        self.expected.note()
        self._note_hours()
        self._gangs.note()

    def _note_hours(self) -> None:
        """Note when hours are used up and when there are new ones: other rows bound the tenant then."""
        for tenant in self.expected.tenants():
            if self._spent.setdefault(tenant, []) != (spent := self.expected.spent(tenant)):
                self.calm.quota_changed_at[tenant] = loop().time()
            self._spent[tenant] = spent

    def _note_admitted(self, reply: Reply, tenant: str) -> None:
        """Note which gang is booked by this: a group is with its first pod that asks for GPUs.

        A queue books a gang at its head, and what Warn admits over the quota is booked by nobody.
        """
        tree, over = reply.tree or {}, any("exceeded quota" in each for each in reply.warnings)
        group = self.expected.group_of(tree) if tree["kind"] == "Pod" and gpus_of(tree) else None
        waits = self.expected.would_wait(tenant, self._whole_of(group or tree))
        if waits or over or not self.calm.knows_tenants() or not self.calm.knows_mode(tenant):
            return
        if tree["kind"] in WORKLOAD_GANGS or group is not None:
            self.expected.reviewed.add(uid_of(group or tree))

    def _note_unled(self, pod: Tree) -> None:
        """A pod that is created while nobody leads may end before a leader has seen it run."""
        until = self.calm.leaderless_until
        if pod["kind"] == "Pod" and loop().time() < until and not is_gated(pod):
            namespace, ask = pod["metadata"]["namespace"], self.expected.ask_of(pod)
            self.expected.lost.append(Lost(until + LOST_SECONDS, namespace, ask, is_over=True))

    def _note_lost(self, tree: Tree) -> None:
        """A create was admitted by us and refused by a webhook after us."""
        is_pod, namespace = tree["kind"] == "Pod", tree["metadata"]["namespace"]
        asks = [self.expected.ask_of(tree)] if is_pod else self._whole_of(tree)
        until, controller = loop().time() + LOST_SECONDS, controller_of(tree) if is_pod else None
        self.expected.lost += [Lost(until, namespace, each, controller) for each in asks]

    def _note_unseen(self, group: Tree) -> None:
        """Note that the pods of a PodGroup are deleted before they ran: the leader may not have seen them."""
        until, namespace, pods = (
            loop().time() + LOST_SECONDS,
            group["metadata"]["namespace"],
            self.expected.pods_of(group),
        )
        if not any(each["spec"].get("nodeName") for each in pods):
            lost = [Lost(until, namespace, each, is_over=True) for each in self.expected.whole_of(group)]
            self.expected.lost += lost

    def _whole_of(self, tree: Tree) -> list[Ask]:
        return self.expected.whole_of(tree) if tree["kind"] in GANGS else []

    def _replaced_by(self, tree: Tree) -> Tree | None:
        """Return a preempted pod of the same controller that ends or has just ended, and has no replacement."""
        controller, now = controller_of(tree), loop().time()
        for pod, gone in self._preempted.values():
            same = controller is not None and (controller_of(pod) or {}).get("uid") == controller["uid"]
            if same and uid_of(pod) not in self.expected.replacements and (gone is None or gone > now - 2):
                return pod
        return None

    def _is_in_booked_gang(self, tree: Tree) -> bool:
        """Tells whether a pod about to be made is one with which its gang was admitted."""
        gang = self.expected.gang_of(tree)
        if gang is None or is_deleting(gang) or uid_of(gang) not in self.expected.reviewed:
            return False
        ends = self._queue.ended_at[self._queue.outermost(tree)] if controller_of(tree) else ()
        if any(loop().time() < each + NEWS_SECONDS for each in ends):
            return False  # a create waits a second for news of an end
        mine = [each for each in self.expected.pods_of(gang) if not is_terminal(each)]
        declared = self.expected.declared(gang) if self.expected.is_gang_now(gang) else []
        return len(mine) < sum(each.count for each in declared)

    # --- life.Observer

    def deleted(self, pod: Tree, condition: str) -> None:
        uid, now = uid_of(pod), loop().time()
        self.expected.deleted_at[uid] = now
        self.report.say(f"delete pod {pod['metadata']['namespace']}/{pod['metadata']['name']} {condition}")
        if condition == "PreemptionByScheduler":
            self.calm.preempted_at = now
            self._queue.ended_at[self._queue.outermost(pod)].append(now)  # its slot is free at once
            if controller_of(pod):
                self._preempted[uid] = pod, None

    def gone(self, pod: Tree) -> None:
        uid, now = uid_of(pod), loop().time()
        self.expected.deleted_at.setdefault(uid, now)
        self._queue.ended_at[self._queue.outermost(pod)].append(now)
        if uid in self._preempted:
            self._preempted[uid] = pod, now
        self.expected.replacements.pop(uid, None)
        tenant, was_preempted = self.expected.tenant_of(pod["metadata"]["namespace"]), uid in self._preempted
        if tenant is not None and self.expected.holds_back(tenant) and is_deleting(pod) and controller_of(pod):
            until = now + (PREEMPTED_SECONDS if was_preempted else SLOT_SECONDS)
            self.expected.ended.append(Lost(until, pod["metadata"]["namespace"], self.expected.ask_of(pod)))
        elif gpus_of(pod) and not is_terminal(pod) and not is_gated(pod):  # who watches may not know it yet
            self.expected.ended.append(Lost(now + WINDOW, pod["metadata"]["namespace"], self.expected.ask_of(pod)))
        if now < self.calm.leaderless_until and gpus_of(pod) and not is_gated(pod):  # no leader may have seen it
            until, namespace = self.calm.leaderless_until + LOST_SECONDS, pod["metadata"]["namespace"]
            self.expected.lost.append(Lost(until, namespace, self.expected.ask_of(pod), is_over=True))

    def runs(self, pod: Tree) -> None:
        self.report.say(f"runs {pod['metadata']['namespace']}/{pod['metadata']['name']} {tier_of(pod)}")

    def workload_deleted(self, tree: Tree, how: str) -> None:
        if how == "foreground" and tree["kind"] in GANGS:
            self.report.foreground_at = loop().time()
        if tree["kind"] == "PodGroup":
            self._note_unseen(tree)
        if how == "orphan":
            self.report.orphaned_at = loop().time()
        self.report.say(f"delete {tree['kind']} {tree['metadata']['name']} {how}")

    def finished(self, tree: Tree) -> None:
        self.report.say(f"finished {tree['kind']} {tree['metadata']['name']}")
