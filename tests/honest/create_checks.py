"""Judges the answers to creates and updates, and the numbers in their sentences."""

import re
from dataclasses import replace

from tests.honest.asks import Ask, missing
from tests.honest.calm import Calm
from tests.honest.expected import WINDOW, Expected
from tests.honest.objects import (
    GANGS,
    PODS,
    TIER_LABEL,
    Tree,
    controller_of,
    gpus_of,
    is_gated,
    tier_of,
    uid_of,
)
from tests.honest.report import Report
from tests.honest.requests import Reply
from tests.ledger.virtual_time import loop

NUMBERS = re.compile(r"(the total|gpu-[a-z]+(?: on [a-z0-9]+)?|on [a-z0-9]+|[a-z0-9]+) is at ([\d.]+) of ([\d.]+)")
"""A sentence that says how full a row is."""
TRY_AGAIN = (429, 503)
"""Codes of answers that decide nothing: ours, and that of an API server that reaches no replica."""
NOBODYS = "refused for GPUs that nobody will use"
OF_HOURS = "GPU-hours"
"""Stands in a sentence on a budget that is used up."""
CANT_START = "can start now"
NONE_STARTS = "none of its pods can start now"
LENT_TIER = "gpu-batch"
"""The lower tier that runs what is over quota, of whatever type: those of other types are lent to nobody."""


class CreateChecks:
    def __init__(self, expected: Expected, calm: Calm, report: Report) -> None:
        self._expected = expected
        self._calm = calm
        self._fail = report.fail

    def pod(self, tree: Tree, reply: Reply, tenant: str, preempted: Tree | None, *, in_booked_gang: bool) -> None:
        """Judge the answer to the create of a pod; `preempted` is the pod that it replaces."""
        expected, fair, exceed = self._expected, self._calm.is_fair(tenant), self._expected.on_exceed(tenant)
        tier, controller = tree["metadata"].get("labels", {}).get(TIER_LABEL, ""), controller_of(tree)
        one = replace(expected.ask_of(tree), tier=tier)
        gang = expected.gang_of(tree)
        if exceed == "Demote" and gang is not None and expected.is_gang_now(gang):  # it is demoted as a whole
            lower = {each.tier for each in expected.gpus_of_pods(gang)}
            one = replace(one, tier=lower.pop()) if len(lower) == 1 else one
        asked = expected.booked_with(tree, one)
        freed = [expected.ask_of(preempted)] if preempted else []
        if preempted and expected.api.still_there(PODS, preempted) is None:
            freed = freed if expected.has_room_now(tenant, asked) else []  # somebody may have what it used
        retried = expected.lost_of(controller)[:1]
        what = controller["kind"] if controller else "bare pod"
        subject = f"{exceed} {what}"
        if not gpus_of(tree):
            return
        if not reply.allowed and expected.goes_with_owner(tree):
            return
        if not reply.allowed:
            self._refused_pod(subject, reply, tenant, asked, freed, in_booked_gang=in_booked_gang)
            fair = fair and reply.code == 403 and not expected.is_reserved_for_queue(tenant, reply.sentence)
            by_slots = fair and expected.has_room(tenant, asked, retried, by_slots=True)
            if by_slots and not expected.has_room(tenant, asked):
                self._fail(NOBODYS, subject, sentence=reply.sentence, bounds=expected.lately(tenant))
            return
        if reply.tree is None:
            return
        got, gang = tier_of(reply.tree), expected.gang_of(reply.tree)
        if got != tier and exceed == "Demote" and not (gang is not None and expected.is_gang_now(gang)):
            room = fair and expected.has_room(tenant, asked)
            if room:
                self._fail("demoted with room", what, got=got, bounds=expected.lately(tenant), warnings=reply.warnings)
            elif fair and preempted and tier_of(preempted) == tier and expected.has_room(tenant, asked, freed):
                self._fail("replacement of a preempted pod demoted", what, got=got)
            elif fair and expected.has_room(tenant, asked, retried, by_slots=True):
                self._fail(NOBODYS, subject, got=got, bounds=expected.lately(tenant))
        if is_gated(reply.tree) and not expected.holds_back(tenant) and fair:
            self._fail("gated though nothing holds", subject)
        for warning in reply.warnings:
            others = self._others_wait(tenant, reply.tree)
            if "is at" in warning and fair and expected.has_room(tenant, asked) and not others:
                about = f"{subject} {_about(warning)}"
                self._fail("warned with room", about, warning=warning, bounds=expected.lately(tenant))
            if exceed == "Warn" and fair and CANT_START in warning:
                self._fail("says that it can't start, and it runs", subject, warning=warning)

    def _refused_pod(
        self, subject: str, reply: Reply, tenant: str, asked: list[Ask], freed: list[Ask], *, in_booked_gang: bool
    ) -> None:
        expected, quiet, fair = self._expected, self._calm.is_quiet(), self._calm.is_fair(tenant)
        if reply.code in TRY_AGAIN:
            if quiet and self._calm.has_same_quota(tenant, 100):
                self._fail("try again without cause", subject, sentence=reply.sentence)
            return
        if OF_HOURS in reply.sentence:
            if quiet and self._calm.has_same_quota(tenant, WINDOW) and expected.are_hours_left(tenant, asked):
                self._fail("refused for hours that are there", subject, sentence=reply.sentence)
            return
        if "asks for" not in reply.sentence and "kept for" not in reply.sentence:
            self._fail("refused for another reason", subject, sentence=reply.sentence)
            return
        if in_booked_gang and quiet and not any(each.until > loop().time() for each in expected.lost):
            self._fail("pod of a booked gang refused", subject, sentence=reply.sentence)
        if expected.is_reserved_for_queue(tenant, reply.sentence):
            return
        if fair and expected.has_room(tenant, asked):
            self._fail("refused with room", subject, sentence=reply.sentence, bounds=expected.lately(tenant))
        elif fair and freed and subject.startswith(("Deny", "Demote")) and expected.has_room(tenant, asked, freed):
            self._fail("replacement of a preempted pod refused", subject, sentence=reply.sentence)

    def workload(self, tree: Tree, old: Tree | None, reply: Reply, tenant: str) -> None:
        """Judge the answer to the create of a workload, or to its update from `old`."""
        expected, fair, exceed = self._expected, self._calm.is_fair(tenant), self._expected.on_exceed(tenant)
        kind = tree["kind"]
        subject = f"{exceed} {kind} {'update' if old else 'create'}"
        own = [each.whole for each in expected.parts(tree)]
        if not reply.allowed:
            self._refused_workload(subject, tree, old, reply, tenant)
            return
        before = [each.whole for each in expected.parts(old)] if old else []
        if old and kind in GANGS and not expected.is_gang_now(old) and not expected.gpus_of_pods(old):
            before = []  # a Job of one pod has what that pod has
        tiers = {each.tier for each in own}
        if old and any(each.tier not in tiers for each in expected.gpus_of_pods(old)):
            return  # its pods were demoted one by one
        more = missing(own, before)
        for warning in reply.warnings:
            if "is at" not in warning and "has no room" not in warning:
                continue
            room, others = expected.has_room(tenant, more), self._others_wait(tenant, reply.tree or tree)
            if fair and room and not others:
                about = f"{subject} {_about(warning)}"
                self._fail("workload warned with room", about, warning=warning, bounds=expected.lately(tenant))
            if exceed == "Warn" and fair and CANT_START in warning:
                self._fail("says that it can't start, and it runs", subject, warning=warning)
            least = expected.whole_of(tree) if kind in GANGS else []
            elastic = least != [each.whole for each in expected.declared(tree, fully=True)] if least else False
            booked = reply.tree is not None and uid_of(reply.tree) in expected.reviewed
            if elastic and booked and not old and NONE_STARTS in warning:
                self._fail("says that no pod starts, and an elastic gang does", subject, warning=warning)
            keeps = elastic or kind == "LeaderWorkerSet"  # its tier, where its least runs; to what serves none is lent
            lower = fair and exceed == "Demote" and not keeps and self._has_room_below(tenant, more)
            if lower and CANT_START in warning:
                self._fail("says that it can't start, and it runs lower", subject, warning=warning)

    def _refused_workload(self, subject: str, tree: Tree, old: Tree | None, reply: Reply, tenant: str) -> None:
        expected, fair, is_gang = self._expected, self._calm.is_fair(tenant), tree["kind"] in GANGS
        if reply.code in TRY_AGAIN and self._calm.is_quiet():
            self._fail("try again without cause", subject, sentence=reply.sentence)
        if reply.code in (*TRY_AGAIN, 404, 409):
            return
        own = [each.whole for each in expected.parts(tree)]
        needed = (expected.whole_of(tree) if is_gang else []) or own
        if "allows" in reply.sentence:
            if own and fair and expected.fits_ever(tenant, needed):
                self._fail("never fits, but would", subject, sentence=reply.sentence)
            return
        was_gang = old is not None and is_gang and expected.is_gang_now(old)
        has = expected.whole_of(old) if old and was_gang else expected.gpus_of_pods(old) if old else []
        if old and is_gang and not was_gang and has:
            subject += " [grows from one pod]"
        tiers = {each.tier for each in expected.gpus_of_pods(old)} if old and is_gang else set()
        if len(tiers) == 1:  # a demoted gang grows in the tier in which it runs
            needed, has = ([replace(each, tier=next(iter(tiers))) for each in some] for some in (needed, has))
        more = missing(needed, has)
        fair = fair and not self._others_wait(tenant, tree)
        if fair and expected.has_room(tenant, more):
            bounds = expected.lately(tenant)
            self._fail("workload refused with room", subject, sentence=reply.sentence, more=more, bounds=bounds)
        elif fair and expected.has_room(tenant, more, by_slots=True):
            self._fail(NOBODYS, subject, sentence=reply.sentence, bounds=expected.lately(tenant))

    def moved(self, pod: Tree, flavor: str, reply: Reply, tenant: str) -> None:
        """Judge the answer to Kueue's choice of a flavor for a pod."""
        expected, subject = self._expected, f"{self._expected.on_exceed(tenant)} Kueue's pod"
        if reply.code in TRY_AGAIN and self._calm.is_quiet():
            self._fail("try again without cause", subject, sentence=reply.sentence)
        if reply.allowed or reply.code in (*TRY_AGAIN, 409) or not self._calm.is_fair(tenant):
            return
        if self._others_wait(tenant, pod):
            return
        ask, rows = replace(expected.ask_of(pod), flavors=(flavor,)), expected.rows(tenant)
        most = expected.lately(tenant)
        if all(most[row.label].high + ask.gpus <= row.hard for row in rows if row.flavor and row.counts(ask)):
            self._fail("refused with room", subject, sentence=reply.sentence, bounds=most)

    def numbers(self, tree: Tree, reply: Reply, tenant: str) -> None:
        """Judge the numbers in the sentences of an answer."""
        expected = self._expected
        if not self._calm.is_fair(tenant):
            return
        rows = {"the total" if row.label == "total" else row.label: row for row in expected.rows(tenant)}
        bounds = expected.lately(tenant, 2 * WINDOW)
        own = [each.whole for each in expected.parts(tree)] if tree["kind"] != "Pod" else []
        for text in (reply.sentence, *reply.warnings):
            about = f"{expected.on_exceed(tenant)} {tree['kind']} {_about(text)}"
            for label, used, hard in NUMBERS.findall(text):
                row = rows.get(label)
                if row is None:
                    continue
                if float(hard) != row.hard:
                    self._fail("wrong hard in a sentence", label, text=text)
                if float(used) > bounds[row.label].high and not (reply.tree and self._others_wait(tenant, reply.tree)):
                    self._fail("sentence says more used than is", about, text=text, bounds=bounds)
                if float(used) < bounds[row.label].low - row.sum(own):
                    self._fail("sentence says less used than is", about, text=text, bounds=bounds)

    def _others_wait(self, tenant: str, tree: Tree) -> bool:
        """Tells whether other pods wait behind our gate, or did a moment ago: the GPUs of some may be reserved."""
        own = tree["metadata"].get("uid")  # one that was refused has none
        others = any(is_gated(each) and uid_of(each) != own for each in self._expected.pods(tenant))
        return others or any(loop().time() < each + WINDOW for each in self._expected.deleted_at.values())

    def _has_room_below(self, tenant: str, asked: list[Ask]) -> bool:
        lower = [replace(each, tier=LENT_TIER) for each in asked if each.tier == "gpu-training"]
        return bool(asked) and len(lower) == len(asked) and self._expected.has_room(tenant, lower)


def _about(text: str) -> str:
    for words in (CANT_START, "are queued", "is queued", "run as", "is admitted", "has no room"):
        if words in text:
            return f"[{words}]"
    return "[asks for]" if "asks for" in text else ""
