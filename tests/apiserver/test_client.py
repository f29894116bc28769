"""The one Kubernetes client against a real API server: its requests, and its errors when that refuses."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
import yaml

from localcluster import Cluster
from webhook.kube.client import Client, metadata_of, path
from webhook.kube.connection import MOST_BYTES
from webhook.kube.discovery import Discovery
from webhook.kube.errors import Conflict, Forbidden, Invalid, NotFound, Unreachable
from webhook.objects.refusal import Unreadable

pytestmark = pytest.mark.apiserver


class ConfigMaps:
    """The ConfigMaps of this test's namespace: objects that nobody else writes."""

    def __init__(self, client: Client, namespace: str) -> None:
        self.client = client
        self.all = path("v1", "configmaps", namespace)
        self.one = path("v1", "configmaps", namespace, "account")

    async def make(self, **data: str) -> dict[str, Any]:
        return await self.client.create(self.all, configmap(**data))

    async def data(self) -> dict[str, str]:
        return dict((await self.client.get(self.one))["data"])


def configmap(**data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "account"}, "data": data}


@pytest.fixture
def configmaps(client: Client, namespace: str) -> ConfigMaps:
    return ConfigMaps(client, namespace)


async def test_an_object_is_created_once(configmaps: ConfigMaps) -> None:
    made = await configmaps.make(used="1")
    assert made["metadata"]["resourceVersion"]
    assert [each["manager"] for each in made["metadata"]["managedFields"]] == ["gpu-tiers"]
    with pytest.raises(Conflict, match='configmaps "account" already exists'):
        await configmaps.make(used="2")
    assert await configmaps.data() == {"used": "1"}


async def test_of_large_objects_a_page_has_fewer(configmaps: ConfigMaps) -> None:
    """One byte each as stored, six as it is sent: 40 MiB."""
    for number in range(8):
        large = configmap(text="<" * 900_000)
        large["metadata"]["name"] = f"large-{number}"
        await configmaps.client.create(configmaps.all, large, seconds=30)
    pages = [page.items or [] async for page in configmaps.client.list_pages(configmaps.all)]
    assert sum(map(len, pages)) >= 8
    assert max(sum(map(len, page)) for page in pages) <= MOST_BYTES


async def test_of_two_that_replace_one_version_the_second_is_reported(configmaps: ConfigMaps) -> None:
    made = await configmaps.make(used="1")
    replaced = await configmaps.client.replace(configmaps.one, {**made, "data": {"used": "2"}})
    assert replaced["metadata"]["resourceVersion"] != made["metadata"]["resourceVersion"]
    with pytest.raises(Conflict, match="the object has been modified"):
        await configmaps.client.replace(configmaps.one, {**made, "data": {"used": "3"}})
    assert await configmaps.data() == {"used": "2"}


async def test_of_fifty_that_count_up_by_replacing_none_is_lost(configmaps: ConfigMaps) -> None:
    await configmaps.make(used="0")

    async def count_up() -> None:
        while True:
            found = await configmaps.client.get(configmaps.one)
            used = str(int(found["data"]["used"]) + 1)
            try:
                await configmaps.client.replace(configmaps.one, {**found, "data": {"used": used}}, seconds=15)
            except Conflict:
                continue
            return

    for _ in range(5):
        await asyncio.gather(*(count_up() for _ in range(10)))
    assert await configmaps.data() == {"used": "50"}


async def test_a_merge_patch_changes_what_it_names(configmaps: ConfigMaps) -> None:
    made = await configmaps.make(used="1", reserved="1")
    patched = await configmaps.client.patch(configmaps.one, {"data": {"reserved": None, "hard": "6"}})
    assert patched["data"] == {"used": "1", "hard": "6"}
    stale = {"metadata": {"resourceVersion": made["metadata"]["resourceVersion"]}, "data": {"used": "9"}}
    with pytest.raises(Conflict):
        await configmaps.client.patch(configmaps.one, stale)


async def test_a_json_patch_is_applied_if_its_test_holds(configmaps: ConfigMaps) -> None:
    await configmaps.make(used="1")
    patch = [{"op": "test", "path": "/data/used", "value": "1"}, {"op": "add", "path": "/data/used", "value": "2"}]
    patched = await configmaps.client.patch(configmaps.one, patch, manager="somebody")
    assert patched["data"] == {"used": "2"}
    assert "somebody" in {each["manager"] for each in patched["metadata"]["managedFields"]}
    with pytest.raises(Invalid):
        await configmaps.client.patch(configmaps.one, patch)


async def test_what_is_not_there_can_neither_be_read_nor_written(configmaps: ConfigMaps) -> None:
    for request in (
        configmaps.client.get(configmaps.one),
        configmaps.client.replace(configmaps.one, configmap(used="1") | {"metadata": {"name": "account", "uid": "1"}}),
        configmaps.client.patch(configmaps.one, {"data": {}}),
    ):
        with pytest.raises((NotFound, Conflict)):
            await request
    with pytest.raises(Invalid, match="Invalid value"):
        await configmaps.client.create(configmaps.all, configmap() | {"metadata": {"name": "No Name"}})


async def test_a_watch_tells_what_happens_after_a_version(configmaps: ConfigMaps, client: Client) -> None:
    made = await configmaps.make(used="1")
    selector = {"fieldSelector": "metadata.name=account"}
    async with client.watch(configmaps.all, made["metadata"]["resourceVersion"], selector) as events:
        await client.patch(configmaps.one, {"data": {"used": "2"}})
        async with asyncio.timeout(120):
            event = await anext(events)
    assert (event.type, metadata_of(event.object).uid) == ("MODIFIED", made["metadata"]["uid"])
    assert metadata_of(event.object).resource_version != made["metadata"]["resourceVersion"]


async def test_a_list_of_several_pages_is_read_whole(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("webhook.kube.client.PAGE_SIZE", 2)
    pages = [page async for page in client.list_pages("/api/v1/namespaces")]
    assert len(pages) >= 2
    assert all(page.metadata.continue_ for page in pages[:-1])
    assert "kube-system" in b"".join(bytes(item) for page in pages for item in page.items or ()).decode()


async def test_it_acts_as_the_kubeconfigs_user_does_as_kubectl_would(cluster: Cluster, tmp_path: Path) -> None:
    config = yaml.safe_load(cluster.kubeconfig.read_text())
    extra = {"example.com/reason": ["a test"]}
    config["users"][0]["user"] |= {"as": "eve", "as-groups": ["readers", "writers"], "as-user-extra": extra}
    acting = tmp_path / "acting.kubeconfig"
    acting.write_text(yaml.safe_dump(config))
    whoami = path("authentication.k8s.io/v1", "selfsubjectreviews")
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    async with await Client.connect(acting) as client:
        user = (await client.create(whoami, body))["status"]["userInfo"]
        with pytest.raises(Forbidden):
            await client.get(path("v1", "configmaps", "kube-system", "kube-root-ca.crt"))
    assert (user["username"], user["extra"]) == ("eve", extra)
    assert user["groups"] == ["readers", "writers", "system:authenticated"]


async def test_no_kubeconfig_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(Unreachable, match="can't find the API server: "):
        await Client.connect(tmp_path / "nowhere.kubeconfig")


async def test_an_api_that_is_not_served_is_reported(client: Client) -> None:
    with pytest.raises(Unreadable, match="this cluster serves no gangs of scheduling"):
        await Discovery(client).api_version("scheduling.k8s.io", "gangs")
    with pytest.raises(Unreadable, match="this cluster serves no gangs of example"):
        await Discovery(client).api_version("example.com", "gangs")
