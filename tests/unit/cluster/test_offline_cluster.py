"""The cluster that a review from files sees."""

import pytest

from webhook.cluster.offline import offline_cluster
from webhook.cluster.views import owner_of
from webhook.objects.pods import OwnerReference, Pod
from webhook.objects.refusal import Missing, Unreadable
from webhook.objects.view import view
from webhook.policy.values.tiers import Tier, Tiers
from webhook.policy.workloads.kind_table import BUILT_IN
from webhook.policy.workloads.workload import Devices

TIERS = Tiers([Tier("gpu-training", 1000), Tier("gpu-interactive", 200, "Never")])


def job(name: str = "train", **metadata: object) -> dict:
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, **metadata}, "spec": {}}


def pod(**spec: object) -> Pod:
    return view({"spec": spec}, Pod)


THE_JOB = OwnerReference(api_version="batch/v1", kind="Job", name="train", uid="1", controller=True)


def test_each_tier_has_its_two_classes_and_kubernetes_its_own():
    classes = offline_cluster(TIERS).known.classes()
    assert (classes["gpu-training"].value, classes["gpu-training"].preemption_policy) == (1000, "PreemptLowerPriority")
    assert classes["gpu-training-nonpreempting"].preemption_policy == "Never"
    assert classes["system-node-critical"].value == 2_000_001_000


def test_a_class_among_the_files_is_there_too():
    given = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "urgent"}, "value": 7}
    assert offline_cluster(TIERS, [given]).known.classes()["urgent"].value == 7


async def test_a_namespace_that_nobody_described_has_its_name_alone():
    described = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a", "labels": {"team": "a"}}}
    cluster = offline_cluster(TIERS, [described])
    assert (await cluster.known.namespace("a")).labels == {"team": "a", "kubernetes.io/metadata.name": "a"}
    assert (await cluster.known.namespace("b")).labels == {"kubernetes.io/metadata.name": "b"}


def test_a_namespace_is_the_tenants_that_selects_it():
    quota = {
        "apiVersion": "gpu-tiers.dev/v1alpha1",
        "kind": "TenantQuota",
        "metadata": {"name": "alpha"},
        "spec": {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "a"}}},
    }
    cluster = offline_cluster(TIERS, [quota])
    assert (cluster.known.tenant_name("a"), cluster.known.tenant_name("b")) == ("alpha", None)


async def test_an_owner_without_uid_is_found_by_kind_and_name():
    (owner,) = await offline_cluster(TIERS, [job(labels={"a": "b"})]).lookups.owners("team-a", THE_JOB, BUILT_IN)
    assert (str(owner), owner.labels) == ("Job/train", {"a": "b"})


async def test_one_with_a_uid_must_have_the_right_one():
    with pytest.raises(Unreadable, match="another UID"):
        await offline_cluster(TIERS, [job(uid="2")]).lookups.owners("team-a", THE_JOB, BUILT_IN)


@pytest.mark.parametrize("objects", [[], [job("other")], [job(namespace="team-b")]])
async def test_one_that_is_not_in_the_files_is_unreadable(objects):
    with pytest.raises(Unreadable, match="Job/train is not among the objects given"):
        await offline_cluster(TIERS, objects).lookups.owners("team-a", THE_JOB, BUILT_IN)


async def test_a_namespace_that_is_given_twice_has_the_labels_of_both():
    """A manifest's Namespace without labels takes none away from the one that the tenants' folder has."""
    tenants, manifest = ({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team-a"}} for _ in range(2))
    tenants["metadata"]["labels"] = {"team": "a"}
    found = await offline_cluster(TIERS, [tenants, manifest]).known.namespace("team-a")
    assert found.labels == {"team": "a", "kubernetes.io/metadata.name": "team-a"}


async def test_a_group_has_its_class():
    group = {
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": "gang"},
        "spec": {"priorityClassName": "gpu-training"},
    }
    found = await offline_cluster(TIERS, [group]).lookups.pod_group("team-a", "gang")
    assert found.priority_class_name == "gpu-training"


async def test_claims_by_name_and_by_template():
    devices = {"devices": {"requests": [{"name": "g", "exactly": {"deviceClassName": "gpu.nvidia.com", "count": 2}}]}}
    objects = [
        {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": "two"}, "spec": devices},
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaimTemplate",
            "metadata": {"name": "two-each"},
            "spec": {"spec": devices},
        },
    ]
    asking = pod(
        resourceClaims=[
            {"name": "a", "resourceClaimName": "two"},
            {"name": "b", "resourceClaimTemplateName": "two-each"},
        ]
    )
    by_name, by_template = asking.spec.resource_claims
    there, nothing = (offline_cluster(TIERS, each).lookups for each in (objects, ()))
    assert await there.devices("team-a", by_name) == (Devices("gpu.nvidia.com", 2, "a", "g", "team-a/two"),)
    assert await there.devices("team-a", by_template) == (Devices("gpu.nvidia.com", 2, "b", "g"),)
    with pytest.raises(Missing, match="ResourceClaim/two is not among the objects given"):
        await nothing.devices("team-a", by_name)


def owner(kind: str, name: str, **more: object) -> dict:
    return {"apiVersion": "apps/v1", "kind": kind, "name": name, "controller": True, **more}


def apps(kind: str, name: str, *owners: dict, **metadata: object) -> dict:
    metadata |= {"name": name, "ownerReferences": list(owners)}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": metadata, "spec": {}}


THE_REPLICASET = OwnerReference(api_version="apps/v1", kind="ReplicaSet", name="chat", controller=True)


@pytest.mark.parametrize("known", [{}, {"uid": "7"}], ids=["no uids", "the owner has one"])
async def test_a_chain_whose_references_have_no_uids_is_walked(known):
    chain = [apps("ReplicaSet", "chat", owner("Deployment", "chat")), apps("Deployment", "chat", **known)]
    owners = await offline_cluster(TIERS, chain).lookups.owners("team-a", THE_REPLICASET, BUILT_IN)
    assert [str(each) for each in owners] == ["ReplicaSet/chat", "Deployment/chat"]


async def test_a_ring_without_uids_is_one_still():
    ring = [
        apps("ReplicaSet", "chat", owner("Deployment", "chat")),
        apps("Deployment", "chat", owner("ReplicaSet", "chat")),
    ]
    with pytest.raises(Unreadable, match="owner ReplicaSet/chat is among its own owners"):
        await offline_cluster(TIERS, ring).lookups.owners("team-a", THE_REPLICASET, BUILT_IN)


async def test_of_two_with_one_name_the_uid_chooses():
    jobs = [job(uid="0", labels={"overlay": "staging"}), job(uid="1", labels={"overlay": "production"})]
    (found,) = await offline_cluster(TIERS, jobs).lookups.owners("team-a", THE_JOB, BUILT_IN)
    assert found.labels == {"overlay": "production"}


async def test_the_pods_of_one_job_cost_one_reading(monkeypatch):
    read: list[str] = []

    def counted(tree, row):
        read.append(tree["metadata"]["name"])
        return owner_of(tree, row)

    monkeypatch.setattr("webhook.cluster.views.owner_of", counted)
    cluster = offline_cluster(TIERS, [job(), job("other")])
    chains = [await cluster.lookups.owners("team-a", THE_JOB, BUILT_IN) for _ in range(3)]
    assert (read, chains[0]) == (["train"], chains[2])
    await cluster.lookups.owners("team-a", THE_JOB, BUILT_IN.with_rows(BUILT_IN.rows[:1]))
    assert read == ["train", "train"]
