"""Asks `why-pending` and `explain` about what is there once all is quiet, and holds their answers against the oracle.

The functions of the commands read the simulated API server, as a person's kubeconfig would. Few rules, sure ones: an
answer never denies room that is there, never promises what can't be, and says the numbers and the position that are.
"""

import re
from collections.abc import Iterator
from datetime import UTC
from itertools import islice

from tests.honest.api import Api, ReplicaClient
from tests.honest.asks import Ask
from tests.honest.clocks import VirtualDatetime
from tests.honest.expected import Expected
from tests.honest.objects import (
    KINDS,
    PODS,
    WITHOUT_PODS,
    WORKLOAD_GANGS,
    Tree,
    controller_of,
    gpus_of,
    is_deleting,
    is_finished,
    is_gated,
    is_terminal,
    tier_of,
)
from tests.honest.queue_checks import VALUES, QueueChecks
from tests.honest.report import Report
from webhook.cli.cluster.one_object import AskedCluster, asked_cluster
from webhook.cli.explain.explanation import explained
from webhook.cli.manifests.documents import Document
from webhook.cli.why_pending.reasons import pod_waits, workload_waits
from webhook.policy.values.tier_policy import TierPolicy

MOST_ASKED = 6
"""Objects of a namespace that are asked about: an answer takes a few milliseconds."""
NOWHERE = "It is not in the queue"
ROOM_NOW = "There is room now"
REFUSED_NOW = re.compile(r"(?:The next try would be refused with|a new one would be refused now): (.*)")
USES = re.compile(r"uses ([\d.]+) of ([\d.]+) of (the total|gpu-[a-z]+(?: on [a-z0-9]+)?|[a-z0-9]+);")
PLACE = re.compile(r"position (\d+) of (\d+)")


class CommandChecks:
    def __init__(self, api: Api, expected: Expected, queue: QueueChecks, report: Report) -> None:
        self._api = api
        self._expected = expected
        self._queue = queue
        self._fail = report.fail

    async def ask(self, policy: TierPolicy) -> None:
        """Ask about the workloads that people made, the pods that wait, and pods that they made."""
        client = ReplicaClient(self._api, 0, 0)
        for tenant in self._expected.tenants():
            for namespace in sorted(self._expected.namespaces(tenant)):
                async with asked_cluster(client, policy, namespace) as asked:  # type: ignore[arg-type]
                    for tree in islice(self._asked_about(namespace), MOST_ASKED):
                        await self._why_pending(asked, tree, tenant)
                        await self._explain(asked, tree, tenant)

    def _asked_about(self, namespace: str) -> Iterator[Tree]:
        for kind, path in KINDS.items():
            for tree in self._api.all(path):
                here = tree["metadata"]["namespace"] == namespace and not is_deleting(tree)
                waits = path == PODS and is_gated(tree)
                if here and kind not in WITHOUT_PODS and (waits or controller_of(tree) is None):
                    yield tree

    # --- why-pending

    async def _why_pending(self, asked: AskedCluster, tree: Tree, tenant: str) -> None:
        document, now = Document("the cluster", tree), VirtualDatetime.now(UTC)
        answer = pod_waits if tree["kind"] == "Pod" else workload_waits
        found = await answer(asked, document, now)
        subject, text = f"{self._expected.on_exceed(tenant)} {tree['kind']}", " ".join(found.sentences)
        name = tree["metadata"]["name"]
        if ROOM_NOW in text and not self._may_fit(tree, tenant):
            self._fail("why-pending promises what can't fit", subject, name=name, text=text)
        for refusal in REFUSED_NOW.findall(text):
            reserved = self._expected.is_reserved_for_queue(tenant, refusal)
            if "asks for" in refusal and not reserved and self._has_room_for_all(tree, tenant):
                self._fail("why-pending denies room that is there", subject, name=name, text=text)
        bounds, rows = self._expected.bounds(tenant), {row.label: row for row in self._expected.rows(tenant)}
        for used, hard, row in USES.findall(text):
            label = "total" if row == "the total" else row
            if label in rows and float(hard) != rows[label].hard:
                self._fail("why-pending says another quota", subject, name=name, text=text)
            if label in rows and not bounds[label].low <= float(used) <= bounds[label].high:
                self._fail("why-pending says another usage", subject, name=name, text=text, bounds=bounds)
        if NOWHERE in text and tree["kind"] == "Pod" and self._queue.is_waiting(tree, tenant):
            self._fail("why-pending finds a pod in no queue", subject, name=name, text=text)
        for nth, count in PLACE.findall(text):
            self._position(tree, tenant, found.pod or name, int(nth), int(count))

    def _may_fit(self, tree: Tree, tenant: str) -> bool:
        """Tells whether some pod of it fits the quota at all, and a demoted one the rows of all tiers."""
        expected = self._expected
        whole = expected.whole_of(tree) if tree["kind"] in WORKLOAD_GANGS and expected.is_gang_now(tree) else []
        ones = [[each.each] for each in expected.parts(tree)]
        demotes = expected.on_exceed(tenant) == "Demote"
        asked = [whole] if whole else ones
        return any(expected.fits_ever(tenant, each, any_tier=demotes) for each in asked) or not asked

    def _has_room_for_all(self, tree: Tree, tenant: str) -> bool:
        """Tells whether its next pods have room. They have no node yet, so none says which flavor they use."""
        tree = {**tree, "spec": {name: value for name, value in tree["spec"].items() if name != "nodeName"}}
        asks: list[Ask] = [each.whole for each in self._expected.parts(tree)]
        if tree["kind"] == "Pod" and asks:  # a group is booked as a whole with its first pod
            asks = self._expected.booked_with(tree, asks[0])
        return bool(asks) and self._expected.has_room(tenant, asks)

    def _position(self, tree: Tree, tenant: str, pod_name: str, nth: int, count: int) -> None:
        """Compare a position with the order of the oracle: by tier, then by age.

        Pods of one workload that stand together share a position, so the oracle knows bounds alone.
        """
        pod = self._api.find(PODS, (tree["metadata"]["namespace"], pod_name))
        if pod is None:
            return
        unit = self._queue.queued_as(pod)
        units = self._queue.units(tenant)
        waiting = [(VALUES[e.tier], (e.created, self._queue.age(e.tree)), self._queue.queued_as(e.tree)) for e in units]
        if not any(each[2] == unit for each in waiting) or self._queue.orphans(tenant):
            return
        mine = [each for each in waiting if each[2] == unit]
        (tier, first, _), last = min(mine, key=lambda e: (-e[0], e[1])), max(each[1] for each in mine)
        others = [each for each in waiting if each[2] != unit]

        def is_older(one: tuple[str, str], other: tuple[str, str]) -> bool:
            return one[0] < other[0] and one[1] < other[1]  # by its pods, and by its workload

        before = {(value, o) for value, ages, o in others if value > tier or (value == tier and is_older(ages, first))}
        after = {(value, o) for value, ages, o in others if value < tier or (value == tier and is_older(last, ages))}
        subject = f"{self._expected.on_exceed(tenant)} {tree['kind']}"
        details = {"name": pod_name, "nth": nth, "count": count, "waiting": waiting}
        gated = sum(map(is_gated, self._expected.pods(tenant)))  # surplus pods of a gang stand apart from it
        if not len({each[2] for each in waiting}) <= count <= gated:
            self._fail("why-pending says another length of the queue", subject, **details)
        elif (
            not len({each for each in before if each[0] > tier}) < nth <= count - len({e for e in after if e[0] < tier})
        ):
            self._fail("why-pending says a position of another tier", subject, **details)
        elif not len(before) < nth <= count - len(after):
            self._fail("why-pending says a position of another age", subject, **details)

    # --- explain

    async def _explain(self, asked: AskedCluster, tree: Tree, tenant: str) -> None:
        found = await explained(asked, tree)
        expected, name = self._expected, tree["metadata"]["name"]
        subject, bounds = f"{expected.on_exceed(tenant)} {tree['kind']}", expected.bounds(tenant)
        reserved, ended = expected.is_reserved_for_queue(tenant, found.message), is_finished(tree) or is_terminal(tree)
        if "asks for" in found.message and not reserved and not ended and self._has_room_for_all(tree, tenant):
            self._fail("explain refuses with room", subject, name=name, message=found.message)
        if found.class_now and gpus_of(tree) and found.class_now.tier != tier_of(tree):
            self._fail("explain says another tier", subject, name=name, now=found.class_now)
        if found.tenant is None or found.tenant.name != tenant:
            self._fail("explain says another tenant", subject, name=name, found=found.tenant)
            return
        if any(map(expected.may_count, expected.pods(tenant))):
            return
        for row, shown in zip(expected.rows(tenant), found.tenant.rows, strict=True):
            if (float(shown.used), float(shown.hard)) != (bounds[row.label].low, row.hard):
                self._fail("explain says other numbers", f"{subject} {row.label}", shown=shown, bounds=bounds)
