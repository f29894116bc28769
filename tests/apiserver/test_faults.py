"""Hundreds of creates while replicas die and sleep: at no instant of etcd's history does a tenant hold too much."""

import os
from collections.abc import Iterator

import pytest

from localcluster.for_tests import announce
from localcluster.versions import DEFAULT_KUBERNETES

from .faults.plan import calm, storm
from .faults.run import Arena, arena

pytestmark = pytest.mark.apiserver

SEED = 11


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Arena]:
    with arena(os.environ.get("K8S") or DEFAULT_KUBERNETES, tmp_path_factory.mktemp("another")) as made:
        yield made


async def test_all_get_in_where_all_fit(three: Arena, pytestconfig: pytest.Config) -> None:
    outcome = await three.run(calm("roomy", gpus=500, creates=500), "500 creates, 500 GPUs")
    announce(pytestconfig, str(outcome))
    assert outcome.is_good, outcome.story()
    assert outcome.answers == {"in": 500}, outcome.story()


async def test_exactly_fifty_of_five_hundred(three: Arena, pytestconfig: pytest.Config) -> None:
    outcome = await three.run(calm("narrow", gpus=50, creates=500), "500 creates, 50 GPUs")
    announce(pytestconfig, str(outcome))
    assert outcome.is_good, outcome.story()
    assert (outcome.answers["in"], outcome.answers["error"]) == (50, 0), outcome.story()


async def test_a_storm(three: Arena, pytestconfig: pytest.Config) -> None:
    outcome = await three.run(storm("storm", SEED, len(three.replicas)), f"seed {SEED}")
    announce(pytestconfig, str(outcome))
    assert outcome.is_good, outcome.story()
