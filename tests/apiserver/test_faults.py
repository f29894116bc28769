"""Creates at once, and while replicas die and sleep: at no instant of etcd's history does a tenant hold too much.

`make chaos` goes on with other seeds, and more creates.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from decimal import Decimal

import pytest

from localcluster import ControlPlane
from localcluster.for_tests import announce

from .faults.api import AGAIN, ERROR, IN, LOST, REFUSED, Api
from .faults.outcome import Outcome
from .faults.plan import Plan, Team, calm, storm
from .faults.run import Arena, arena
from .installed import Tree, gpu_pod, metric_of

pytestmark = pytest.mark.apiserver

SEED = 11
CREATES = 150
"""In the storm; `make chaos` makes 1,000."""
CREATED, FORBIDDEN, EXISTS = 201, 403, 409
SETTLED_SECONDS = 90
"""Seconds, more than H, for which nobody gets the place of a create of which it is not known whether it was stored."""
OVERLOADED = 500
"""From here on a status says that the API server did not get to an answer: 504, or 500 where a webhook had no time."""

Tell = Callable[[Outcome], Outcome]


@pytest.fixture(scope="module")
def three(bare: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Arena]:
    with arena(bare, tmp_path_factory.mktemp("another")) as made:
        yield made


@pytest.fixture
def announced(pytestconfig: pytest.Config) -> Tell:
    def tell(outcome: Outcome) -> Outcome:
        announce(pytestconfig, str(outcome))
        assert outcome.is_good, outcome.story()
        return outcome

    return tell


async def test_all_get_in_where_all_fit_and_exactly_fifteen_where_fifteen_do(three: Arena, announced: Tell) -> None:
    outcome = announced(await three.run(calm(75, roomy=75, narrow=15), "75 creates for 75 GPUs, 75 for 15"))
    assert answers(outcome).keys() == {IN, REFUSED}, outcome.story()
    assert all(error[0] in "05" or "try again" in error for error in outcome.errors), (
        "no status but that of an overload"
    )
    assert outcome.answers[IN] == 75 + 15, outcome.story()
    taken = [metric_of(each.address, "gpu_tiers_bookings_taken_total", outcome="booked") for each in three.replicas]
    assert sum(taken) > 0, "bookings go to the leader"


async def test_of_two_gangs_that_fit_alone_exactly_one_is_admitted(three: Arena, pytestconfig: pytest.Config) -> None:
    """In fifteen tenants of 8 GPUs at once; the pods of those that were admitted are never refused."""
    teams = tuple(Team(f"pair-{number}", (f"pair-{number}",), {None: 8}) for number in range(15))
    three.add_tenants(Plan(teams, ()))
    async with Api(three.cluster.kubeconfig) as api:
        jobs = [(team.name, name) for team in teams for name in ("left", "right")]
        found = await asyncio.gather(*(decided(api, jobs_of(space), job(name)) for space, name in jobs))
        let_in = [tree for status, tree in found if status == CREATED]
        pods = [(tree["metadata"], number) for tree in let_in for number in range(8)]
        made = await asyncio.gather(*(decided(api, pods_of(gang), pod_of(gang, number)) for gang, number in pods))
    refused = [tree["message"] for status, tree in found if status == FORBIDDEN]
    assert Counter(each["metadata"]["namespace"] for each in let_in) == dict.fromkeys((each.name for each in teams), 1)
    assert len(refused) == len(teams)
    assert all("asks for 8 GPUs (8 x 1)" in each for each in refused), refused[0]
    assert [said["message"] for status, said in made if status == FORBIDDEN] == []
    announce(pytestconfig, f"two gangs for one slot, 15 times: {len(let_in)} admitted, {len(made)} pods, none refused")


async def test_a_storm(three: Arena, announced: Tell) -> None:
    announced(await three.run(storm("storm", SEED, len(three.replicas), CREATES), f"seed {SEED}"))


async def decided(api: Api, path: str, tree: Tree) -> tuple[int, Tree]:
    """The answer to a create, asked again as a controller would where none came, or none in time.

    What was admitted and not stored keeps its slot for a while, so that a refusal is none before that.
    """
    blocked_until = 0.0
    while True:
        status, said = await api.ask("POST", path, tree)
        if status == FORBIDDEN and time.monotonic() < blocked_until:
            await asyncio.sleep(1)
            continue
        if status in (CREATED, FORBIDDEN):
            return status, said
        if status == 0 or status >= OVERLOADED:
            blocked_until = time.monotonic() + SETTLED_SECONDS
        if status == EXISTS:
            return CREATED, (await api.ask("GET", f"{path}/{tree['metadata']['name']}"))[1]
        assert status == 0 or status >= OVERLOADED or "try again" in said.get("message", ""), said


async def test_five_hundred_creates_in_the_last_seconds_of_a_budget_and_three_replicas(three: Arena) -> None:
    """Ten GPUs use up twenty GPU-seconds; all replicas refuse within seconds of that, and admit with new hours."""
    name, path = "hours", "/api/v1/namespaces/hours/pods"
    quota = "/apis/gpu-tiers.dev/v1alpha1/tenantquotas/hours"
    three.add_tenants(Plan((Team(name, (name,), {None: 1000}),), ()))
    begins, ends = (datetime.fromtimestamp(time.time() + each, UTC).isoformat("T", "seconds") for each in (-1, 3600))

    def with_hours(gpu_seconds: float) -> Tree:
        hours = str(round(Decimal(gpu_seconds) / 3600, 6))
        return {"spec": {"budgets": [{"gpuHours": hours, "from": begins, "until": ends}]}}

    async with Api(three.cluster.kubeconfig) as api:
        assert (await api.ask("PATCH", quota, with_hours(20)))[0] == 200
        for number in range(10):
            assert (await decided(api, path, gpu_pod(f"runs-{number}", 1)))[0] == CREATED
            to = {
                "apiVersion": "v1",
                "kind": "Binding",
                "metadata": {"name": f"runs-{number}"},
                "target": {"name": "n"},
            }
            assert (await api.ask("POST", f"{path}/runs-{number}/binding", to))[0] == CREATED
        used_up = time.monotonic() + 2

        async def create(number: int) -> tuple[float, int, str]:
            status, said = await decided(api, path, gpu_pod(f"late-{number}", 1))
            return time.monotonic(), status, said.get("message", "")

        answers = await asyncio.gather(*map(create, range(500)))
        late = [at - used_up for at, status, _ in answers if status == CREATED]
        refused = [said for _, status, said in answers if status == FORBIDDEN]
        assert max(late, default=0) < 5, "seconds: the look, the note, the watch"
        assert len(refused) > 100
        assert [each for each in refused if "[budget-used-up]" not in each] == []
        assert {(await create(number))[1] for number in range(500, 530)} == {FORBIDDEN}, "every replica refuses"

        assert (await api.ask("PATCH", quota, with_hours(100_000)))[0] == 200
        deadline = time.monotonic() + 30
        while (await create(530))[1] != CREATED:
            assert time.monotonic() < deadline, "there are new hours"
        await asyncio.sleep(1)
        assert {(await create(number))[1] for number in range(531, 561)} == {CREATED}


def jobs_of(namespace: str) -> str:
    return f"/apis/batch/v1/namespaces/{namespace}/jobs"


def pods_of(gang: Tree) -> str:
    return f"/api/v1/namespaces/{gang['namespace']}/pods"


def job(name: str) -> Tree:
    """8 pods at once, of one GPU each."""
    template = {key: value for key, value in gpu_pod("", tier="gpu-batch").items() if key in ("metadata", "spec")}
    template["spec"] = {**template["spec"], "restartPolicy": "Never"}
    spec = {"parallelism": 8, "completions": 8, "completionMode": "Indexed", "template": template}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": spec}


def pod_of(gang: Tree, number: int) -> Tree:
    """A pod as the Job controller makes it."""
    pod = gpu_pod(f"{gang['name']}-{number}", tier="gpu-batch")
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": gang["name"], "uid": gang["uid"], "controller": True}
    pod["metadata"]["ownerReferences"] = [owner]
    return pod


def answers(outcome: Outcome) -> dict[str, int]:
    """Return the answers that people read, without those that a client library tries again on a busy machine."""
    return {what: number for what, number in outcome.answers.items() if what not in (AGAIN, ERROR, LOST)}
