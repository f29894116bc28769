"""A person with few rights reads first what that person can do alone."""

from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import pytest

from tests.builders import a_policy
from tests.unit.report.lint.asking import a_cluster
from webhook.cli.cluster.reader import ClusterReader
from webhook.cli.cluster.target import ASK_FOR_CLUSTER_READER, RIGHTS
from webhook.cli.cluster.workloads import Gathering, WorkloadsOfCluster, workloads_of
from webhook.cli.lint import lint_answer
from webhook.cli.manifests.documents import BadInput
from webhook.cli.progress import Steps
from webhook.cluster.listed import no_claims
from webhook.kube.client import Page
from webhook.kube.errors import Forbidden
from webhook.report.lint.rule import LintReport, NotChecked


class Closed:
    """An API server that lets somebody list nothing but these, and serves no kind of workload."""

    def __init__(self, *opened: str) -> None:
        self._opened = opened

    async def list_pages(self, place: str, params: object = None, **how: object) -> AsyncIterator[Page]:
        del params, how
        if not place.endswith(self._opened):
            raise Forbidden(f"GET {place}: HTTP 403", 403, "", path=place)
        yield Page()

    async def get(self, place: str, **how: object) -> dict[str, Any]:
        del place, how
        return {"groups": [], "resources": []}


def reader(*opened: str) -> ClusterReader:
    client: Any = Closed(*opened)
    lookups: Any = SimpleNamespace(devices=no_claims)
    return ClusterReader(client, a_policy(), Steps(), lookups)


OUT = f". Name a namespace of yours: -n NAMESPACE. Else {ASK_FOR_CLUSTER_READER}"


async def test_who_may_not_list_namespaces_may_name_one() -> None:
    with pytest.raises(BadInput) as refused:
        await workloads_of(reader("tenantquotas", "priorityclasses"))
    assert str(refused.value).endswith(OUT)
    assert "is unknown: you lack the right to list namespaces" in str(refused.value)


async def test_who_may_not_list_all_pods_may_name_a_namespace() -> None:
    async def judged(_: object) -> None: ...

    policy = a_policy()
    there = WorkloadsOfCluster(reader(), a_cluster())
    with pytest.raises(BadInput) as refused:
        await there.gather(Gathering(policy.kinds, judged))
    assert str(refused.value).endswith(OUT)
    with pytest.raises(BadInput) as at_home:
        await there.gather(Gathering(policy.kinds, judged), "team-alpha")
    assert "an admin of namespace team-alpha binds it" in str(at_home.value)


def test_what_is_not_checked_says_what_it_needs_without_brackets_of_its_own() -> None:
    needs = f"the right to {RIGHTS['configurations']}"
    left = lint_answer(LintReport((), (NotChecked(needs, ("webhook-missing", "ca-expires")),)))
    assert left.missing == (f"not checked: webhook-missing, ca-expires; that needs {needs}.",)
