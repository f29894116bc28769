"""A cluster without one policy: each command says what its own --policy does."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
import typer

from webhook.cli import lint, posture
from webhook.cli.cluster_options import answered
from webhook.cli.installed import policy_in_force
from webhook.config.errors import ConfigError
from webhook.kube.errors import failure
from webhook.kube.wire import Page


class Cluster:
    """An API server with these ConfigMaps of ours, and nothing else. It is its own client."""

    def __init__(self, *names: str) -> None:
        self._names = names

    @asynccontextmanager
    async def client(self) -> AsyncIterator["Cluster"]:
        """As a Target gives one."""
        yield self

    async def list_pages(self, place: str, params: object = None) -> AsyncIterator[Page]:
        """The ConfigMaps."""
        del params
        found = [
            {"metadata": {"namespace": each, "name": "gpu-tiers"}, "data": {"policy.yaml": ""}} for each in self._names
        ]
        wanted = found if place == "/api/v1/configmaps" else []
        yield Page(items=[msgspec.Raw(msgspec.json.encode(each)) for each in wanted])


async def of_lint(cluster: Any) -> object:
    return await lint._of_cluster(cluster)


async def of_posture(cluster: Any) -> object:
    return await posture._of_cluster(cluster)


async def of_explain(cluster: Any) -> object:
    return await policy_in_force(cluster, None)


@pytest.mark.parametrize(
    ("asked", "advice"),
    [
        (of_lint, "--policy FILE looks at a policy file alone, and asks no cluster"),
        (of_posture, "--policy FILE looks at a policy file alone, and asks no cluster"),
        (of_explain, "name the policy file with --policy"),
    ],
)
@pytest.mark.parametrize(
    ("cluster", "problem"),
    [
        (Cluster(), "no ConfigMap of a gpu-tiers installation is there"),
        (Cluster("a", "b"), "several installations: a/gpu-tiers, b/gpu-tiers"),
    ],
    ids=["none", "two"],
)
async def test_it_says_what_to_do_instead(
    asked: Callable[[Any], Awaitable[object]], advice: str, cluster: Cluster, problem: str
) -> None:
    with pytest.raises(ConfigError) as error:
        await asked(cluster)
    assert str(error.value).endswith(f"{problem}; {advice}")


SAID = 'configmaps is forbidden: User "ada" cannot list resource "configmaps" in API group "" at the cluster scope'


def test_a_missing_right_is_told_as_kubectl_tells_it(capsys: pytest.CaptureFixture[str]) -> None:
    async def forbidden() -> None:
        raise failure("GET", "/api/v1/configmaps?limit=500", 403, msgspec.json.encode({"message": SAID}))

    with pytest.raises(typer.Exit):
        answered(forbidden)
    assert capsys.readouterr().err.startswith(f"{SAID}. ClusterRole gpu-tiers-cluster-reader, which is")
