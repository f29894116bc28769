"""The walk from a pod to its makers, over references that anybody may have written."""

import pytest

from webhook.cluster.views import Owner, links, owner_of
from webhook.objects.group_kind import GroupKind
from webhook.objects.pods import OwnerReference
from webhook.objects.refusal import Unreadable
from webhook.policy.workloads.kind_table import BUILT_IN, KindRow


def reference(kind: str, name: str, uid: str, api_version: str = "batch/v1") -> OwnerReference:
    return OwnerReference(api_version=api_version, kind=kind, name=name, uid=uid, controller=True)


class Cluster:
    """Objects by kind and name, each with the controller it names."""

    def __init__(self) -> None:
        self.objects: dict[tuple[str, str], Owner] = {}

    def holds(self, kind: GroupKind, name: str, uid: str, controller: OwnerReference | None = None) -> "Cluster":
        owners = [] if controller is None else [_tree(controller), {"kind": "Event", "name": "no-controller"}]
        metadata = {"name": name, "uid": uid, "labels": {"team": name}, "ownerReferences": owners}
        self.objects[kind.kind, name] = owner_of({"metadata": metadata}, BUILT_IN.by_kind[kind])
        return self

    async def fetch(self, wanted: OwnerReference, row: KindRow) -> Owner:
        assert row.plural
        try:
            return self.objects[wanted.kind, wanted.name]
        except KeyError:
            raise Unreadable(f"owner {wanted.kind}/{wanted.name} does not exist") from None


def _tree(owner: OwnerReference) -> dict:
    return {
        "apiVersion": owner.api_version,
        "kind": owner.kind,
        "name": owner.name,
        "uid": owner.uid,
        "controller": owner.controller,
    }


JOB, JOBSET, TRAINJOB = (
    GroupKind("batch", "Job"),
    GroupKind("jobset.x-k8s.io", "JobSet"),
    GroupKind("trainer.kubeflow.org", "TrainJob"),
)
THE_JOBSET = reference("JobSet", "llm", "2", "jobset.x-k8s.io/v1alpha2")
THE_TRAINJOB = reference("TrainJob", "llm", "3", "trainer.kubeflow.org/v1alpha1")


async def test_the_chain_of_a_trainjob_is_found_nearest_first():
    cluster = Cluster().holds(JOB, "llm-node-0", "1", THE_JOBSET).holds(JOBSET, "llm", "2", THE_TRAINJOB)
    cluster.holds(TRAINJOB, "llm", "3")
    chain = await links(reference("Job", "llm-node-0", "1"), BUILT_IN, cluster.fetch)
    assert [str(owner) for _, owner in chain] == ["Job/llm-node-0", "JobSet/llm", "TrainJob/llm"]
    assert chain[0][1].labels == {"team": "llm-node-0"}


async def test_it_ends_at_a_kind_that_nobody_knows():
    cluster = Cluster().holds(JOB, "step", "1", reference("Pipeline", "p", "2", "example.com/v1"))
    assert len(await links(reference("Job", "step", "1"), BUILT_IN, cluster.fetch)) == 1
    assert await links(reference("Pipeline", "p", "2", "example.com/v1"), BUILT_IN, cluster.fetch) == ()


async def test_another_groups_job_is_not_the_job_of_batch():
    cluster = Cluster().holds(JOB, "train", "1")
    assert await links(reference("Job", "train", "1", "example.com/v1"), BUILT_IN, cluster.fetch) == ()


async def test_a_forged_uid_is_reported():
    cluster = Cluster().holds(JOB, "train", "1")
    with pytest.raises(Unreadable, match="owner Job/train has another UID than the reference to it"):
        await links(reference("Job", "train", "9"), BUILT_IN, cluster.fetch)


async def test_a_uid_that_can_be_none_is_not_looked_up():
    with pytest.raises(Unreadable, match="owner Job/train is named with a uid of 1000000 characters"):
        await links(reference("Job", "train", "x" * 1_000_000), BUILT_IN, Cluster().fetch)


async def test_a_missing_owner_is_reported():
    with pytest.raises(Unreadable, match="owner Job/train does not exist"):
        await links(reference("Job", "train", "1"), BUILT_IN, Cluster().fetch)


async def test_a_ring_of_owners_is_reported():
    cluster = (
        Cluster().holds(JOB, "a", "1", reference("Job", "b", "2")).holds(JOB, "b", "2", reference("Job", "a", "1"))
    )
    with pytest.raises(Unreadable, match="owner Job/a is among its own owners"):
        await links(reference("Job", "a", "1"), BUILT_IN, cluster.fetch)


async def test_a_chain_without_end_is_not_followed_for_ever():
    cluster = Cluster()
    for number in range(20):
        cluster.holds(JOB, f"j{number}", str(number), reference("Job", f"j{number + 1}", str(number + 1)))
    with pytest.raises(Unreadable, match="owner Job/j8 is number 9 in a chain of owners; 8 are read at most"):
        await links(reference("Job", "j0", "0"), BUILT_IN, cluster.fetch)


def test_an_owner_whose_template_is_broken_still_counts_by_its_labels():
    broken = {"metadata": {"name": "train", "uid": "1", "labels": {"a": "b"}}, "spec": {"template": {"spec": "?"}}}
    owner = owner_of(broken, BUILT_IN.by_kind[JOB])
    assert (owner.workload.labels, owner.workload.members, owner.workload.uid) == ({"a": "b"}, (), "1")


def test_a_sound_template_makes_members():
    template = {"spec": {"containers": [{"name": "t", "resources": {"limits": {"nvidia.com/gpu": 2}}}]}}
    owner = owner_of(
        {"metadata": {"name": "train"}, "spec": {"parallelism": 3, "template": template}}, BUILT_IN.by_kind[JOB]
    )
    assert [member.count for member in owner.workload.members] == [3]
