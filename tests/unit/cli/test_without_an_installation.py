"""A cluster without one policy: each command says what its own --policy does."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
import typer

from tests.builders import policy_file
from webhook.cli import check, lint, posture
from webhook.cli.cluster.installed import read_active_policy
from webhook.cli.cluster.target import end_without_answer
from webhook.config.errors import ConfigError
from webhook.config.published import Published
from webhook.kube.client import Page
from webhook.kube.errors import failure
from webhook.policy.values.tier_policy import Mode


class Cluster:
    """An API server with these ConfigMaps of ours, and nothing else. It is its own client."""

    def __init__(self, *names: str, data: Mapping[str, str] | None = None, suffix: str = "") -> None:
        self._names, self._data, self._suffix = names, data or {"policy.yaml": ""}, suffix

    @asynccontextmanager
    async def client(self) -> AsyncIterator["Cluster"]:
        """Yield the client, as a Target does."""
        yield self

    async def list_pages(self, place: str, params: object = None) -> AsyncIterator[Page]:
        """The ConfigMaps."""
        del params
        found = [
            {"metadata": {"namespace": each, "name": f"gpu-tiers{self._suffix}"}, "data": self._data}
            for each in self._names
        ]
        wanted = found if place == "/api/v1/configmaps" else []
        yield Page(items=[msgspec.Raw(msgspec.json.encode(each)) for each in wanted])


async def of_lint(cluster: Any) -> object:
    return await lint._of_cluster(cluster)


async def of_posture(cluster: Any) -> object:
    return await posture._of_cluster(cluster)


async def of_explain(cluster: Any) -> object:
    return await read_active_policy(cluster, None)


@pytest.mark.parametrize(
    ("asked", "advice"),
    [
        (of_lint, "--policy FILE looks only at a policy file, and asks no cluster"),
        (of_posture, "--policy FILE looks only at a policy file, and asks no cluster"),
        (of_explain, "name the policy file with --policy"),
    ],
)
@pytest.mark.parametrize(
    ("cluster", "problem"),
    [
        (Cluster(), "there is no ConfigMap of a gpu-tiers installation"),
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


async def test_where_somebody_deleted_the_policy_s_config_map_the_one_beside_it_answers(
    capsys: pytest.CaptureFixture[str],
) -> None:
    published = Published(policy_file(mode="Warn"), "a1b2", "2026-11-21T09:00:00Z").data()
    data = {key: value or "" for key, value in published.items()}
    cluster: Any = Cluster("gpu-tiers", data=data, suffix="-active")
    assert (await read_active_policy(cluster, None)).mode is Mode.Warn
    assert capsys.readouterr().err == (
        "Warning: ConfigMap gpu-tiers/gpu-tiers does not exist. "
        "This is answered from the active policy since 2026-11-21T09:00:00Z\n"
    )


async def test_check_names_no_option_that_it_has_not() -> None:
    cluster: Any = Cluster()
    with pytest.raises(ConfigError, match="which --kubeconfig and --context name") as error:
        await check._installed(cluster)
    assert "--policy" not in str(error.value)


SAID = 'configmaps is forbidden: User "ada" cannot list resource "configmaps" in API group "" at the cluster scope'


def test_a_missing_right_is_reported_as_by_kubectl(capsys: pytest.CaptureFixture[str]) -> None:
    forbidden = failure("GET", "/api/v1/configmaps?limit=500", 403, msgspec.json.encode({"message": SAID}))
    with pytest.raises(typer.Exit):
        end_without_answer(forbidden)
    assert capsys.readouterr().err.startswith(f"{SAID}. ClusterRole gpu-tiers-cluster-reader")
