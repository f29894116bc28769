"""`gpu-tiers posture` of a cluster whose policy file has changed."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
from typer.testing import CliRunner

from tests.builders import policy_file
from webhook.cli.main import app
from webhook.cli.posture import _of_cluster
from webhook.config.published import Published, digest_of
from webhook.kube.client import Page
from webhook.kube.errors import NotFound


def test_the_mode_of_a_file_is_not_said_to_be_a_clusters() -> None:
    output = CliRunner().invoke(app, ["posture", "--policy=four-tier"]).stdout
    assert output.endswith("--policy says mode Audit; the cluster's mode is not known.\n")
    assert "nothing is refused" not in output


FOUR = policy_file(preset="four-tier")
ACME = policy_file(
    preset="",
    tiers=[{"name": "acme-prod", "value": 9000}, {"name": "gpu-batch", "value": 400}],
    resources=[{"name": "nvidia.com/gpu"}],
    workloadTypes={},
    defaultTier="gpu-batch",
)


class Cluster:
    """An API server with a policy file, another active policy, and the classes of both. It is its own client."""

    def __init__(self, file: str, published: str) -> None:
        output = Published(published, digest_of(published), "2026-11-23T09:00:00Z")
        place = {"namespace": "gpu-tiers", "labels": {"app.kubernetes.io/name": "gpu-tiers"}}
        values = {"gpu-training": 1000, "gpu-serving": 800, "gpu-batch": 400, "acme-prod": 9000, "urgent": 500}
        self._there: dict[str, list[dict[str, Any]]] = {
            "configmaps": [
                {"metadata": {**place, "name": "gpu-tiers"}, "data": {"policy.yaml": file}},
                {"metadata": {**place, "name": "gpu-tiers-active"}, "data": output.data()},
            ],
            "priorityclasses": [{"metadata": {"name": name}, "value": value} for name, value in values.items()],
        }

    @asynccontextmanager
    async def client(self) -> AsyncIterator["Cluster"]:
        """Yield the client, as a Target does."""
        yield self

    async def get(self, place: str) -> dict[str, Any]:
        """No group of APIs but the core's."""
        raise NotFound(place, 404)

    async def list_pages(self, place: str, params: object = None) -> AsyncIterator[Page]:
        """Yield the objects of a kind."""
        del params
        found = self._there.get(place.rpartition("/")[2], [])
        yield Page(items=[msgspec.Raw(msgspec.json.encode(each)) for each in found])


async def test_the_classes_of_a_policy_that_is_just_arriving_are_not_shown_as_other_peoples(
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = await _of_cluster(Cluster(file=ACME, published=FOUR))  # type: ignore[arg-type]
    assert "was changed, and is not active yet" in capsys.readouterr().err
    assert [each.name for each in found.tiers][:3] == ["gpu-training", "gpu-serving", "gpu-batch"]
    assert not found.tiers[0].refused, "a class that both policies have is shown"
    assert not found.tiers[2].refused
    assert [each.name for each in found.classes] == ["urgent"]


async def test_once_it_is_active_those_of_the_former_one_are(capsys: pytest.CaptureFixture[str]) -> None:
    found = await _of_cluster(Cluster(file=ACME, published=ACME))  # type: ignore[arg-type]
    assert capsys.readouterr().err == ""
    assert [each.name for each in found.classes] == ["gpu-training", "gpu-serving", "urgent"]
