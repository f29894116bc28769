"""The cost of a preemption is reported even if the API server fails to answer while leaders change."""

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import msgspec
import pytest

from tests.builders import a_pod, a_policy
from tests.builders.built import Tree
from webhook.cluster.pod_informer import Ended, SeenPod, seen_pod
from webhook.controllers import evicted_pods
from webhook.controllers.evicted_pods import EvictedPods, Followed, Preempted, PreemptionWatch, Victim
from webhook.kube.errors import ApiError, Conflict, Failed, Forbidden, NotFound, Unreachable
from webhook.ledger.protocol import Holding
from webhook.objects.pods import OwnerReference
from webhook.policy.checkpoint.work_lost import ContainerEnd, LastSave, Outcome, Work
from webhook.policy.quota.charges import Charge
from webhook.report.latest import Preemption

EVENT = Preempted("batch.17", "41", False, Victim(namespace="research", name="batch", uid="v"), "p", "node-1", "")


class Hiccups:
    """An API server that gives these answers, one after another; a mistake is raised."""

    def __init__(self, *answers: Tree | ApiError) -> None:
        self._answers = list(answers)
        self.patched: list[Tree] = []

    async def get(self, _: str) -> Tree:
        return self._next()

    async def patch(self, _: str, body: Tree) -> Tree:
        self.patched.append(body)
        return self._next()

    def _next(self) -> Tree:
        answer = self._answers.pop(0)
        if isinstance(answer, ApiError):
            raise answer
        return answer


def evicted(
    api: Hiccups | None = None, holdings: Mapping[str, Holding] = {}, reported: Mapping[str, LastSave] = {}
) -> EvictedPods:
    policy, tenants = a_policy(), dict[str, str]()
    return EvictedPods(api or Hiccups(), tenants.get, lambda: policy, holdings.get, reported.get)  # type: ignore[arg-type]


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evicted_pods, "LOOK", 0.0)


STARTING = Unreachable("refused"), Failed("starting", 503), Forbidden("no rights are known yet", 403)


async def test_a_victim_is_read_once_the_api_server_is_back() -> None:
    pod = a_pod("batch", "research").having("metadata.uid", "v").asking(8)
    seen = await evicted(Hiccups(*STARTING, pod.json()))._read(EVENT.victim)
    assert seen
    assert seen.metadata.name == "batch"


def settled(said: str) -> Tree:
    annotations = {"gpu-tiers.dev/settled": said}
    return {"metadata": {"namespace": "research", "name": "batch.17", "annotations": annotations}}


@pytest.mark.parametrize(("said", "we_tell"), [("telling", True), ("true", False)])
async def test_one_that_another_had_only_begun_to_report_is_reported(said: str, we_tell: bool) -> None:
    api = Hiccups(Conflict("somebody wrote", 409), *STARTING, settled(said))

    async def notify(*_: object) -> None: ...

    watch = PreemptionWatch(api, evicted(api), lambda: 3600.0, notify)  # type: ignore[arg-type]
    assert await watch._claim(EVENT) is we_tell
    assert api.patched[0]["metadata"]["resourceVersion"] == "41"


@pytest.mark.parametrize(("known_for", "reported"), [(1.0, [""]), (3600.0, [])])
async def test_a_victim_that_was_gone_before_a_term_began_may_have_used_gpus(
    known_for: float, reported: list[str]
) -> None:
    """A leader that knew all pods at the eviction knows that the victim used none."""
    found = list[str]()

    async def notify(preemption: Preemption, _: object) -> None:
        found.append(preemption.victim.gpus)

    api = Hiccups(NotFound("gone", 404), {}, {})
    pods = evicted(api, holdings={"p": Holding("research", Charge(Decimal(8), "gpu-training"))})
    watch = PreemptionWatch(api, pods, lambda: known_for, notify)  # type: ignore[arg-type]
    await watch._followed("e", EVENT._replace(time=datetime.now(UTC).isoformat()))
    assert found == reported


EVICTED = datetime(2026, 11, 24, 2, tzinfo=UTC)
STARTED = EVICTED - timedelta(hours=1)
AT = EVICTED.timestamp()
PREEMPTED = EVENT._replace(time=EVICTED.isoformat())
REPORTED = {"v": LastSave(1240, AT - 30)}


def training(*command: str) -> SeenPod:
    status = {"containerStatuses": [{"state": {"running": {"startedAt": STARTED.isoformat()}}}]}
    pod = a_pod("batch", "research").asking(8, command=list(command or ("torchrun", "train.py")))
    return seen_pod(msgspec.json.encode(pod.having("status", status).json()))


def ended(message: str = "", after: float = 9) -> Ended:
    return Ended({"main": ContainerEnd(message, 143, AT + after)}, seen=True)


def test_a_victim_that_saved_loses_what_it_did_after_its_save() -> None:
    lost = evicted(reported=REPORTED)._lost(
        PREEMPTED, training(), ended("gpu-tiers: saved in 7 s\n"), Outcome("saved", 7)
    )
    assert lost == Work(16.0, exact=True), "8 GPUs ended 2 s after the save, which is newer than its last report"


def test_one_that_did_not_save_loses_what_it_did_since_its_last_report() -> None:
    lost = evicted(reported=REPORTED)._lost(PREEMPTED, training(), ended(), Outcome("no-hook"))
    assert lost == Work(8 * 39.0, exact=True)


def test_one_of_which_nothing_is_known_loses_at_most_all_since_its_start() -> None:
    assert evicted()._lost(PREEMPTED, training(), ended(), Outcome("no-hook")) == Work(8 * 3609.0, exact=False)
    by_claim = {"v": Holding("research", Charge(Decimal(2), "gpu-batch"))}
    assert evicted(holdings=by_claim)._lost(PREEMPTED, training(), Ended({}, seen=False), Outcome("unknown")) == Work(
        2 * 3600.0, exact=False
    ), "as many GPUs as it used, until it was evicted"


def test_a_server_has_no_work_to_lose() -> None:
    assert evicted()._lost(PREEMPTED, training("vllm", "serve", "llama"), ended(), Outcome("no-hook")) is None


def test_of_a_victim_that_was_gone_a_report_still_tells() -> None:
    victim, gone = PREEMPTED.victim, Followed(OwnerReference(), gone=True)
    holdings = {"v": Holding(victim.namespace, Charge(Decimal(8), "gpu-batch"), name=victim.name)}
    for reported, lost in ((REPORTED, Work(240.0, exact=True)), ({}, None)):
        notify = evicted(holdings=holdings, reported=reported).preemption(PREEMPTED, gone, led=True)
        assert notify is not None
        assert (notify.saved, notify.lost) == ("unknown", lost)


async def test_who_took_its_place_may_be_seen_later_than_the_event() -> None:
    holdings = dict[str, Holding]()
    waiting = asyncio.create_task(evicted(holdings=holdings).until_known(EVENT))
    await asyncio.sleep(0)
    assert not waiting.done()
    holdings["p"] = Holding("research", Charge(Decimal(8), "gpu-training"))
    await waiting
    await evicted().until_known(EVENT)  # one that holds no GPUs is not waited for without end


async def test_what_was_known_of_a_victim_is_reported_by_who_leads_again_and_has_forgotten_it() -> None:
    holdings = {"v": Holding("research", Charge(Decimal(8), "gpu-batch"), name="batch")}
    pods = evicted(Hiccups(NotFound("gone", 404)), holdings=holdings)
    gone = await pods.follow(PREEMPTED)
    holdings.clear()
    notify = pods.preemption(PREEMPTED, gone, led=True)
    assert notify is not None
    assert (notify.victim.tier, notify.saved) == ("gpu-batch", "unknown")


async def test_a_victim_without_a_hook_had_its_whole_grace_period_after_sigterm() -> None:
    pod = a_pod("batch", "research").asking(8).having("spec.terminationGracePeriodSeconds", 90)
    outcome = await evicted_pods.victim_outcome(None, pod.view(), ended(), a_policy())  # type: ignore[arg-type]
    said = "it had no preStop hook but 90 s after SIGTERM to save; whether it saved is unknown"
    assert str(outcome) == said
