"""The two answers that are worth another attempt, and how the real Job and ReplicaSet controllers take them."""

from collections.abc import Iterator

import pytest

from .installed import Installed, Tree, gpu_pod
from .test_ledger import account, patch_status

pytestmark = pytest.mark.apiserver


@pytest.fixture
def tenant(installed: Installed, namespace: str) -> Iterator[str]:
    with installed.tenant_for(f"coded-{namespace}", namespace, quotas=[{"gpus": 2}]) as name:
        yield name


def job(name: str) -> Tree:
    spec = {"template": {"spec": {**gpu_pod(name)["spec"], "restartPolicy": "Never"}}}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": spec}


def replica_set(name: str) -> Tree:
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": gpu_pod(name)["spec"]}
    spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": name}, "spec": spec}


def refused(installed: Installed, namespace: str, name: str) -> list[str]:
    """Return the messages that the controllers got for objects of this name, each once."""
    selector = f"reason=FailedCreate,involvedObject.name={name}"
    events = installed.api.get("events", namespace, fieldSelector=selector)["items"]
    return sorted({each["involvedObject"]["kind"] + ": " + each["message"].partition(" denied ")[2] for each in events})


def made(installed: Installed, namespace: str, name: str) -> int:
    pods = installed.get("pods", namespace)["items"]
    return sum(each["metadata"]["name"].startswith(f"{name}-") for each in pods)


def test_a_job_and_a_replicaset_get_their_pods_when_the_reason_has_passed(
    installed: Installed, namespace: str, tenant: str
) -> None:
    # 1. No room: 403 with the words that workflow engines look for.
    installed.eventually(lambda: bool(installed.create(gpu_pod("three", 3), namespace, dry_run=True).code), "the quota")
    assert not installed.create(gpu_pod("holder", 2), namespace).code
    sentence = f"exceeded quota: tenant {tenant}: the total is at 2 of 2 GPUs; this pod asks for 1."
    answer = installed.create(gpu_pod("more"), namespace).stderr
    assert answer.startswith("Error from server (Forbidden)")
    assert f'"pods.validate.gpu-tiers.dev" denied the request: {sentence}' in answer
    for tree in (job("full"), replica_set("full")):
        assert not installed.create(tree, namespace).code
    installed.eventually(lambda: len(refused(installed, namespace, "full")) == 2, "both, refused")
    assert [each.partition("; ")[0] for each in refused(installed, namespace, "full")] == [
        f"{kind}: the request: {sentence.partition('; ')[0]}" for kind in ("Job", "ReplicaSet")
    ]
    installed.api.delete("pod/holder", namespace=namespace, seconds=0)
    installed.eventually(lambda: made(installed, namespace, "full") == 2, "the pods of both")

    # 2. No decision: 429, which is no reason to give up either.
    installed.api.delete("job/full", "replicaset/full", namespace=namespace)
    installed.eventually(lambda: installed.usage(tenant) == "total 0/2", "room")
    assert namespace in account(installed, tenant)["namespaces"]
    patch_status(installed, tenant, {"status": {"ledger": {"format": 2}}})
    answer = installed.create(gpu_pod("more"), namespace).stderr
    assert answer.startswith("Error from server (TooManyRequests)")
    assert "can't decide now, try again: the ledger of tenant" in answer
    for tree in (job("undecided"), replica_set("undecided")):
        assert not installed.create(tree, namespace).code
    installed.eventually(lambda: len(refused(installed, namespace, "undecided")) == 2, "both, told to try again")
    assert all("can't decide now, try again" in each for each in refused(installed, namespace, "undecided"))
    patch_status(installed, tenant, {"status": {"ledger": None}})
    installed.eventually(lambda: made(installed, namespace, "undecided") == 2, "the pods of both, after the repair")
