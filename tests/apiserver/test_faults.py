"""Hundreds of creates while replicas die and sleep: at no instant of etcd's history does a tenant hold too much.

`make chaos` goes on with other seeds.
"""

import os
from collections.abc import Callable, Iterator

import pytest

from localcluster.for_tests import announce
from localcluster.versions import DEFAULT_KUBERNETES

from .faults.api import AGAIN, IN, REFUSED
from .faults.outcome import Outcome
from .faults.plan import calm, storm
from .faults.run import Arena, arena

pytestmark = pytest.mark.apiserver

SEED = 11

Tell = Callable[[Outcome], Outcome]


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Arena]:
    with arena(os.environ.get("K8S") or DEFAULT_KUBERNETES, tmp_path_factory.mktemp("another")) as made:
        yield made


@pytest.fixture
def told(pytestconfig: pytest.Config) -> Tell:
    def tell(outcome: Outcome) -> Outcome:
        announce(pytestconfig, str(outcome))
        assert outcome.is_good, outcome.story()
        return outcome

    return tell


async def test_all_get_in_where_all_fit(three: Arena, told: Tell) -> None:
    outcome = told(await three.run(calm("roomy", gpus=500, creates=500), "500 creates, 500 GPUs"))
    assert answers(outcome) == {IN: 500}, outcome.story()


async def test_exactly_fifty_of_five_hundred(three: Arena, told: Tell) -> None:
    outcome = told(await three.run(calm("narrow", gpus=50, creates=500), "500 creates, 50 GPUs"))
    assert answers(outcome).keys() == {IN, REFUSED}, outcome.story()
    assert outcome.answers[IN] == 50, outcome.story()


async def test_a_storm(three: Arena, told: Tell) -> None:
    told(await three.run(storm("storm", SEED, len(three.replicas)), f"seed {SEED}"))


def answers(outcome: Outcome) -> dict[str, int]:
    """What people read; a busy machine may have told their client library to try again."""
    return {what: number for what, number in outcome.answers.items() if what != AGAIN}
