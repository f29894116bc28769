"""Judges gangs that wait: each is admitted as a whole, or not at all."""

from tests.honest.calm import Calm
from tests.honest.expected import Expected
from tests.honest.objects import GANG, Tree, created_at, gpus_of, is_active, is_deleting, is_gated, is_terminal, uid_of
from tests.honest.report import Report
from tests.ledger.virtual_time import loop

WHOLE_SECONDS = 5.0
"""All pods of a gang that are there are opened within this, once the first one is."""

LAG_SECONDS = 1.5
"""The leader sees a change of a gang within this, and the oracle what the leader admitted."""


class GangChecks:
    def __init__(self, expected: Expected, calm: Calm, report: Report) -> None:
        self.grown: set[str] = set()
        """Gangs that were changed while pods of theirs ran, or a moment before the leader let them in as they were."""
        self.in_part: set[str] = set()
        """Gangs of which a part was admitted: what follows from that is not judged."""
        self._expected = expected
        self._calm = calm
        self._report = report
        self._since: dict[str, float] = {}
        """When the first pod of a gang was admitted while another one waited."""
        self._while_new: set[str] = set()
        """Gangs of which the first pod was admitted while a replica did not know the tenant yet: limits.NEW_TENANT."""
        self._noted: tuple[int, ...] = ()
        self._changed_at: dict[str, float] = {}

    def changed(self, uid: str, *, holds: bool) -> None:
        """Note that a workload was changed, whose pods hold GPUs or none."""
        self._changed_at[uid] = loop().time()
        if holds:
            self.grown.add(uid)

    def note(self) -> None:
        """Look which gangs are admitted, as soon as anything has changed."""
        expected = self._expected
        seen = expected.api.versions()
        if seen == self._noted:
            return
        self._noted = seen
        gangs = {uid_of(each): each for each in expected.gangs()}
        for uid in [uid for uid in (*expected.reviewed, *expected.admitted) if "/" in uid and uid not in gangs]:
            expected.reviewed.discard(uid)  # all pods of the group are gone
            expected.admitted.pop(uid, None)
        for uid, gang in gangs.items():
            if not expected.is_gang_now(gang):
                expected.reviewed.discard(uid)
                expected.admitted.pop(uid, None)
                self._since.pop(uid, None)
                continue
            pods = expected.pods_of(gang)
            if uid not in expected.admitted and any(expected.holds(each) and not is_deleting(each) for each in pods):
                if loop().time() < self._changed_at.get(uid.partition("/")[0], float("-inf")) + LAG_SECONDS:
                    self.grown.add(uid)
                used = [expected.ask_of(each) for each in pods if expected.holds(each)]
                tenant = expected.tenant_of(gang["metadata"]["namespace"])
                in_part = uid in self.grown or (tenant is not None and expected.on_exceed(tenant) == "Warn")
                expected.admitted[uid] = used if in_part else expected.whole_of(gang)
                if _any_waits(pods):
                    self._since[uid] = loop().time()
                    self._while_new |= set() if self._calm.knows_tenants() else {uid}
            elif uid in expected.admitted and self._has_all(gang, pods):
                expected.admitted[uid] = expected.whole_of(gang)
            if not _any_waits(pods):
                self._since.pop(uid, None)

    def tick(self) -> None:
        """Look which gangs are admitted in part, once a second."""
        for gang in self._expected.gangs() if self._since else ():
            since = max(self._since.get(uid_of(gang), float("inf")), self._calm.leaderless_until)
            if loop().time() > since + WHOLE_SECONDS:
                del self._since[uid_of(gang)]
                self._check_whole(gang)

    def _has_all(self, gang: Tree, pods: list[Tree]) -> bool:
        """Tells whether all pods that a gang asks for are admitted: it may have grown, or shrunk."""
        asked = sum(each.count for each in self._expected.declared(gang))
        return not any(map(is_gated, pods)) and sum(map(is_active, pods)) >= asked

    def _check_whole(self, gang: Tree) -> None:
        expected, uid = self._expected, uid_of(gang)
        tenant = expected.tenant_of(gang["metadata"]["namespace"])
        pods = expected.pods_of(gang)
        # One that somebody deletes was admitted too.
        admitted = [each for each in pods if not (is_terminal(each) or is_gated(each)) and gpus_of(each)]
        asked = sum(each.count for each in expected.declared(gang))
        if tenant is None or uid in self.grown or len(admitted) >= asked:
            return
        made_for = {each["metadata"].get("annotations", {}).get(GANG, uid) for each in pods}
        if gang["kind"] == "Job" and made_for - {uid}:
            return  # its JobSet was deleted without it: pods that were made before count one by one (docs/gangs.md)
        self.in_part.add(uid)
        subject, name = f"Hold {gang['kind']}", gang["metadata"]["name"]
        rule = "half a gang was admitted"
        if uid in self._while_new:
            rule = "half a gang of a new tenant was admitted"
        elif self._calm.mode_changed_at[tenant] > created_at(gang) - 1:
            rule = "half a gang was admitted after a change of onExceed"
        self._report.fail(rule, subject, name=name, admitted=len(admitted), asked=asked)


def _any_waits(pods: list[Tree]) -> bool:
    return any(is_gated(each) for each in pods if gpus_of(each) and is_active(each))
