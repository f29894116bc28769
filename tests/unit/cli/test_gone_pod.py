"""`gpu-tiers why-pending` of a pod that is gone, when its Events are gone too."""

from types import SimpleNamespace
from typing import Any

import pytest

from tests.builders import a_policy
from webhook.cli.manifests.documents import BadInput
from webhook.cli.why_pending import OLDER_EVICTIONS, _reasons
from webhook.kube.errors import NotFound
from webhook.objects.view import Tree


class Nobody:
    """An API server with these namespaces, and nothing in them."""

    def __init__(self, *namespaces: str) -> None:
        self._namespaces = namespaces

    async def get(self, place: str) -> Tree:
        if place.rpartition("/")[2] in self._namespaces:
            return {}
        raise NotFound(place, 404)

    async def objects(self, *_: object) -> list[Tree]:
        return []


async def refused(client: Nobody, namespace: str) -> str:
    asked: Any = SimpleNamespace(policy=a_policy(), reader=SimpleNamespace(client=client, objects=client.objects))
    with pytest.raises(BadInput) as problem:
        await _reasons(asked, namespace, "", "spot")
    return str(problem.value)


async def test_an_older_eviction_is_to_be_found_elsewhere() -> None:
    sentence = await refused(Nobody("lab"), "lab")
    assert sentence.startswith('there is no Pod "spot" in namespace lab. ')
    assert sentence.endswith(OLDER_EVICTIONS)
    assert "lines `preempted`" in OLDER_EVICTIONS


async def test_without_the_namespace_that_is_all_that_is_said() -> None:
    assert await refused(Nobody(), "lab") == "there is no namespace lab"
