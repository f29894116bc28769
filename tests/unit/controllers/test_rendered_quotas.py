"""One ResourceQuota of a backstop: whether it is ours, and when it is written."""

from typing import Any, cast

import pytest

from webhook.controllers.backstop_writer import Place, manifest, problem_of_writing, rendered_for
from webhook.controllers.event_writer import Regarding
from webhook.kube.client import Client
from webhook.kube.errors import ApiError, Conflict, Forbidden, NotFound

PLACE, ALPHA = Place("team-alpha", "gpu-tiers"), Regarding.tenant_quota("alpha", "u1")


def wanted(owner: Regarding = ALPHA, gpus: str = "1000") -> dict[str, Any]:
    return manifest(PLACE, owner, {"hard": {"requests.nvidia.com/gpu": gpus}})


def stored(owner: Regarding = ALPHA, gpus: str = "1000") -> dict[str, Any]:
    """Return the ResourceQuota as the API server has it, with a label of somebody else's."""
    tree = wanted(owner, gpus)
    labels = tree["metadata"]["labels"] | {"team": "a"}
    return {**tree, "metadata": {**tree["metadata"], "labels": labels, "resourceVersion": "7"}}


class Api:
    """Takes what is written, or refuses it."""

    def __init__(self, error: ApiError | None = None) -> None:
        self.error = error
        self.requests: list[tuple[str, str]] = []
        self.body: dict[str, Any] = {}

    async def create(self, path: str, body: dict[str, Any]) -> None:
        self._take("create", path, body)

    async def replace(self, path: str, body: dict[str, Any]) -> None:
        self._take("replace", path, body)

    async def delete(self, path: str, *, version: str) -> None:
        self._take("delete", f"{path} at {version}", {})

    def _take(self, verb: str, path: str, body: dict[str, Any]) -> None:
        self.requests.append((verb, path))
        self.body = body
        if self.error is not None:
            raise self.error


async def written(api: Api, there: dict[str, Any] | None, due: dict[str, Any] | None) -> str | None:
    return await problem_of_writing(cast("Client", api), PLACE, there, due)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, ALPHA),
        ({"controller": False}, None),
        ({"kind": "Deployment", "apiVersion": "apps/v1"}, None),
        ({"apiVersion": "gpu-tiers.dev/v1"}, ALPHA),
        ({"apiVersion": "example.com/v1"}, None),
    ],
)
def test_ours_is_what_a_tenant_quota_controls(change: dict[str, Any], expected: Regarding | None) -> None:
    tree = wanted()
    tree["metadata"]["ownerReferences"][0].update(change)
    assert rendered_for(tree) == expected


async def test_what_is_in_step_is_not_written() -> None:
    """The API server writes 1000 as 1k, and may have more labels on it."""
    api = Api()
    assert await written(api, stored(gpus="1k"), wanted()) is None
    assert api.requests == []


@pytest.mark.parametrize("there", [stored(gpus="6"), stored(Regarding.tenant_quota("alpha", "u0")), stored(gpus="six")])
async def test_what_is_not_is_replaced_and_keeps_what_others_wrote(there: dict[str, Any]) -> None:
    api = Api()
    assert await written(api, there, wanted()) is None
    assert [verb for verb, _ in api.requests] == ["replace"]
    assert api.body["spec"] == wanted()["spec"]
    assert rendered_for(api.body) == ALPHA
    assert (api.body["metadata"]["labels"]["team"], api.body["metadata"]["resourceVersion"]) == ("a", "7")


async def test_it_is_deleted_only_as_it_was_read() -> None:
    api = Api()
    assert await written(api, stored(), None) is None
    assert api.requests == [("delete", "/api/v1/namespaces/team-alpha/resourcequotas/gpu-tiers at 7")]


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (
            Conflict("POST: HTTP 409, already exists", 409),
            (
                "ResourceQuota/gpu-tiers in team-alpha is somebody else's, so the backstop lacks it; "
                "delete it, or give it another name"
            ),
        ),
        (
            Forbidden('HTTP 403, User "x" cannot create resource "resourcequotas"', 403),
            "gpu-tiers may not write ResourceQuotas; set the chart's value backstop.enabled to true",
        ),
        (
            Forbidden("HTTP 403, denied by policy", 403),
            "ResourceQuota/gpu-tiers in team-alpha is not in step: HTTP 403, denied by policy",
        ),
        (Forbidden("HTTP 403, in namespace team-alpha because it is being terminated", 403), None),
        (NotFound("HTTP 404", 404), None),
    ],
)
async def test_what_stands_in_the_way_is_reported(error: ApiError, sentence: str | None) -> None:
    assert await written(Api(error), None, wanted()) == sentence
