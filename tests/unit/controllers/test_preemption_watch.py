"""A preemption is told of although the API server does not answer for a while: that is when leaders change."""

import pytest

from tests.builders import a_pod, a_policy
from tests.builders.built import Tree
from webhook.controllers import preemption_watch
from webhook.controllers.preempted_events import Preempted, Victim
from webhook.controllers.preemption_watch import PreemptionWatch
from webhook.kube.errors import ApiError, Conflict, Failed, Forbidden, Unreachable

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


def watch(api: Hiccups) -> PreemptionWatch:
    async def told(*_: object) -> None: ...

    nobody, policy = (lambda _: None), a_policy()
    return PreemptionWatch(api, nobody, lambda: policy, nobody, lambda: True, told, nobody)  # type: ignore[arg-type]


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preemption_watch, "LOOK", 0.0)


STARTING = Unreachable("refused"), Failed("starting", 503), Forbidden("no rights are known yet", 403)


async def test_a_victim_is_read_once_the_api_server_is_back() -> None:
    pod = a_pod("batch", "research").having("metadata.uid", "v").asking(8)
    seen = await watch(Hiccups(*STARTING, pod.json()))._read(EVENT.victim)
    assert seen
    assert seen.pod.metadata.name == "batch"


def settled(said: str) -> Tree:
    annotations = {"gpu-tiers.dev/settled": said}
    return {"metadata": {"namespace": "research", "name": "batch.17", "annotations": annotations}}


@pytest.mark.parametrize(("said", "we_tell"), [("telling", True), ("true", False)])
async def test_one_that_another_had_only_begun_to_tell_of_is_told_of(said: str, we_tell: bool) -> None:
    api = Hiccups(Conflict("somebody wrote", 409), *STARTING, settled(said))
    assert await watch(api)._claim(EVENT) is we_tell
    assert api.patched[0]["metadata"]["resourceVersion"] == "41"
