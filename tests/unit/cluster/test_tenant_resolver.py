"""The time for which a namespace is remembered that was looked up and that no watch brings."""

import asyncio

import pytest

from tests.builders import a_tenant
from webhook.cluster.watched import FRESH_SECONDS, MOST_REMEMBERED, REMEMBERED_SECONDS, TenantResolver
from webhook.objects.refusal import Unreadable
from webhook.policy.values.facts import Namespace

OLD = a_tenant("old", namespaceSelector={"matchLabels": {"team": "a"}})
YOUNG = OLD.having("metadata.name", "young").having("metadata.creationTimestamp", "2026-11-02T08:00:00Z")


class Cluster:
    """Namespaces that exist, those of them that the watch has brought, and the time."""

    def __init__(self) -> None:
        self.there: dict[str, Namespace] = {}
        self.watched: dict[str, Namespace] = {}
        self.reachable = True
        self.lookups = 0
        self.now = 0.0
        self.resolver = TenantResolver(self.watched.get, self.look_up, lambda: self.now)
        self.resolver.update([YOUNG.view(), OLD.view()])

    def make(self, name: str) -> None:
        self.there[name] = Namespace(name, {"team": "a"})

    async def look_up(self, name: str) -> Namespace | None:
        self.lookups += 1
        await asyncio.sleep(0)
        if not self.reachable:
            raise Unreadable(f"namespace {name} can't be read")
        return self.there.get(name)


async def test_of_two_tenants_the_older_has_it() -> None:
    cluster = Cluster()
    cluster.make("new")
    assert [tenant.name for tenant in cluster.resolver.tenants] == ["old", "young"]
    assert cluster.resolver.tenant_of(await cluster.resolver.namespace("new")) == OLD.view()
    assert cluster.resolver.tenant_name("new") == "old"
    cluster.resolver.update([YOUNG.view()])
    assert cluster.resolver.tenant_name("new") == "young"


def test_of_two_of_one_age_the_first_by_name_has_it() -> None:
    cluster = Cluster()
    twin = YOUNG.having("metadata.creationTimestamp", OLD.json()["metadata"]["creationTimestamp"])
    cluster.resolver.update([twin.having("metadata.name", "also").view(), OLD.view()])
    assert [tenant.name for tenant in cluster.resolver.tenants] == ["also", "old"]
    assert cluster.resolver.tenant_of(Namespace("new", {"team": "b"})) is None, "nobody selects it"


async def test_it_is_asked_for_once_at_a_time_and_again_after_a_second() -> None:
    cluster = Cluster()
    cluster.make("new")
    await asyncio.gather(*(cluster.resolver.namespace("new") for _ in range(20)))
    assert cluster.lookups == 1
    cluster.there["new"] = Namespace("new", {"team": "b"})
    cluster.now += FRESH_SECONDS
    assert (await cluster.resolver.namespace("new")).labels == {"team": "b"}
    assert cluster.resolver.tenant_name("new") is None


async def test_one_that_was_deleted_after_it_was_looked_up_is_forgotten() -> None:
    cluster = Cluster()
    cluster.make("new")
    await cluster.resolver.namespace("new")
    del cluster.there["new"]
    cluster.now += FRESH_SECONDS
    assert cluster.resolver.tenant_name("new") == "old"
    with pytest.raises(Unreadable, match="namespace new does not exist"):
        await cluster.resolver.namespace("new")
    assert cluster.resolver.tenant_name("new") is None


async def test_one_that_can_not_be_looked_up_again_is_remembered_for_a_time() -> None:
    cluster = Cluster()
    cluster.make("new")
    await cluster.resolver.namespace("new")
    cluster.reachable = False
    cluster.now += FRESH_SECONDS
    with pytest.raises(Unreadable, match="can't be read"):
        await cluster.resolver.namespace("new")
    assert cluster.resolver.tenant_name("new") == "old"
    cluster.now = REMEMBERED_SECONDS
    assert cluster.resolver.tenant_name("new") is None


async def test_a_look_up_that_comes_after_the_watch_changes_nothing() -> None:
    cluster = Cluster()
    cluster.make("new")
    asked = asyncio.create_task(cluster.resolver.namespace("new"))
    await asyncio.sleep(0)
    cluster.watched["new"] = Namespace("new", {})
    cluster.resolver.update([OLD.view()])
    await asked
    assert cluster.resolver.tenant_name("new") is None
    assert await cluster.resolver.namespace("new") == Namespace("new", {})


async def test_the_longest_known_make_room() -> None:
    cluster = Cluster()
    for number in range(MOST_REMEMBERED + 1):
        cluster.make(f"new-{number}")
        await cluster.resolver.namespace(f"new-{number}")
    assert cluster.resolver.tenant_name("new-0") is None
    assert cluster.resolver.tenant_name("new-1") == cluster.resolver.tenant_name(f"new-{MOST_REMEMBERED}") == "old"
