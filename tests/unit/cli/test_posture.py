"""`gpu-tiers posture` of a cluster whose policy file has changed."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
from typer.testing import CliRunner

from tests.builders import a_tenant, policy_file
from webhook.cli.main import app
from webhook.cli.posture import _of_cluster, posture_answer
from webhook.config.load import parse
from webhook.config.published import Published, digest_of
from webhook.kube.client import Page
from webhook.kube.errors import NotFound
from webhook.policy.quota.tenant_quotas import read_tenant
from webhook.report.posture import posture_of


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

    def __init__(self, file: str, published: str, *tenants: dict[str, Any]) -> None:
        output = Published(published, digest_of(published), "2026-11-23T09:00:00Z")
        place = {"namespace": "gpu-tiers", "labels": {"app.kubernetes.io/name": "gpu-tiers"}}
        values = {"gpu-training": 1000, "gpu-serving": 800, "gpu-batch": 400, "acme-prod": 9000, "urgent": 500}
        self._there: dict[str, list[dict[str, Any]]] = {
            "tenantquotas": [*tenants],
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


async def test_a_tenant_that_is_not_ready_is_listed_with_its_reason() -> None:
    older = "TenantQuota alpha is older and selects lab too, and applies there"
    overlap = {"type": "Ready", "status": "False", "reason": "Overlap", "message": older}
    beta = a_tenant("beta").json() | {"status": {"conditions": [overlap]}}
    found = await _of_cluster(Cluster(FOUR, FOUR, a_tenant("alpha").json(), beta))  # type: ignore[arg-type]
    answer = posture_answer(found)
    (tenants,) = [each for each in answer.tables if each.title == "Tenants"]
    assert [row[0] for row in tenants.rows] == ["alpha", "beta (not Ready)"]
    assert f"Tenant beta: Overlap: {older}" in answer.notes


async def test_an_unknown_tier_is_said_once() -> None:
    """By the policy now, and by what the leader wrote about the same tier."""
    gone = read_tenant(a_tenant("beta", maxTier="gold").json())
    (unknown,) = posture_of(parse(FOUR), [gone]).tenants[0].unknown
    status = {"conditions": [{"type": "Ready", "status": "False", "reason": "UnknownTier", "message": unknown}]}
    beta = a_tenant("beta", maxTier="gold").json() | {"status": status}
    found = await _of_cluster(Cluster(FOUR, FOUR, beta))  # type: ignore[arg-type]
    assert [each for each in posture_answer(found).notes if "gold" in each] == [f"Tenant beta: {unknown}"]
