"""Gangs on a real API server: a workload is admitted whole or not at all, and its pods draw on its GPUs."""

from collections.abc import Iterator

import pytest

from installation.workload_crds import WORKLOAD_KINDS
from tests.builders.workloads import WorkloadBuilder
from tests.unit.admission.test_gangs import GANGS, asked, pods_of

from .asking import events
from .gangs import Gangs, pytorchjob
from .installed import Installed, Tree, gpu_pod

pytestmark = pytest.mark.apiserver


def cronjob(name: str, pods: int, gpus: int) -> Tree:
    """Jobs of some pods at a time, once a night."""
    template = {"spec": {**gpu_pod("", gpus)["spec"], "restartPolicy": "Never"}}
    job = {"parallelism": pods, "completions": pods, "template": template}
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": name, "labels": {"gpu-tiers.dev/tier": "gpu-training"}},
        "spec": {"schedule": "0 3 * * *", "jobTemplate": {"spec": job}},
    }


WRAPPERS = "workload.codeflare.dev/v1beta2"


def appwrapper(name: str, inner: Tree) -> Tree:
    """Return an AppWrapper around one workload, as a user writes it."""
    metadata = {"name": name}
    return {
        "apiVersion": WRAPPERS,
        "kind": "AppWrapper",
        "metadata": metadata,
        "spec": {"components": [{"template": inner}]},
    }


@pytest.fixture
def gangs(installed: Installed, namespace: str) -> Iterator[Gangs]:
    installed.tenant("gang", namespace, quotas=[{"tier": "gpu-training", "gpus": "8"}, {"gpus": "16"}])
    found = Gangs(installed, namespace)
    found.shows("gpu-training 0/8, total 0/16")  # nothing is counted of the tenant before, which had the same name
    yield found
    installed.api.delete("tenantquota/gang")


def test_a_workload_whose_name_is_taken_books_nothing(gangs: Gangs) -> None:
    assert gangs.apply(pytorchjob("there", 1, gpus=0)) == ""
    refused = gangs.apply(pytorchjob("there", 7))
    assert gangs.installed.usage("gang") == "gpu-training 0/8, total 0/16"
    assert "(AlreadyExists): " in refused
    assert 'denied the request: pytorchjobs.kubeflow.org "there" already exists' in refused


def test_of_two_gangs_that_fit_alone_one_is_admitted_whole(gangs: Gangs) -> None:
    assert gangs.apply(pytorchjob("first", 7)) == ""
    refused = gangs.apply(pytorchjob("second", 7))
    assert "PyTorchJob second asks for 8 GPUs (8 x 1); tenant gang has 0 of gpu-training left. " in refused
    assert "Would fit: gpu-serving (8 left), gpu-batch (8 left), gpu-interactive (8 left). " in refused
    gangs.shows("gpu-training 0/8 (+8 reserved), total 0/16 (+8 reserved)")
    for number in range(8):
        assert gangs.pod(f"first-{number}", "first") == "", "the pods of one that was admitted are never refused"
    gangs.shows("gpu-training 8/8, total 8/16")
    assert "gpu-training is at 8 of 8 GPUs; this pod asks for 1." in gangs.pod("first-more", "first")


def test_the_jobs_of_a_cronjob_are_admitted_whole_each_by_itself(gangs: Gangs) -> None:
    gangs.apply(cronjob("nightly", pods=3, gpus=2))
    assert gangs.run("create", "job", "first", "--from=cronjob/nightly") == ""
    gangs.shows("gpu-training 6/8, total 6/16")
    refused = gangs.run("create", "job", "second", "--from=cronjob/nightly")
    fits = "tenant gang has 2 of gpu-training left, enough for 1 of these pods, but they start only together. "
    assert f"Job second asks for 6 GPUs (3 x 2); {fits}" in refused


def test_what_an_appwrapper_carries_draws_on_what_the_wrapper_holds(gangs: Gangs) -> None:
    inner = pytorchjob("first", 7)
    assert gangs.apply(appwrapper("wrapped", inner)) == ""
    gangs.shows("gpu-training 0/8 (+8 reserved), total 0/16 (+8 reserved)")
    refused = gangs.apply(appwrapper("other", pytorchjob("second", 7)))
    assert "AppWrapper other asks for 8 GPUs (8 x 1); tenant gang has 0 of gpu-training left. " in refused
    uid = gangs.installed.get("appwrapper/wrapped", gangs.namespace)["metadata"]["uid"]
    owner = {"apiVersion": WRAPPERS, "kind": "AppWrapper", "name": "wrapped", "uid": uid, "controller": True}
    assert gangs.apply({**inner, "metadata": {**inner["metadata"], "ownerReferences": [owner]}}) == ""
    for number in range(8):
        assert gangs.pod(f"first-{number}", "first") == "", "its controller and the operator make the rest"
    gangs.shows("gpu-training 8/8, total 8/16")
    assert "gpu-training is at 8 of 8 GPUs; this pod asks for 1." in gangs.pod("first-more", "first")


def test_a_gang_keeps_its_place_until_it_is_deleted(gangs: Gangs) -> None:
    gangs.apply(pytorchjob("first", 3))
    assert gangs.pod("one", "first") == ""
    gangs.shows("gpu-training 1/8 (+3 reserved), total 1/16 (+3 reserved)")
    gangs.delete("pod/one", seconds=0)
    gangs.shows("gpu-training 0/8 (+4 reserved), total 0/16 (+4 reserved)")
    assert gangs.pod("one", "first") == ""
    gangs.shows("gpu-training 1/8 (+3 reserved), total 1/16 (+3 reserved)")
    gangs.delete("pytorchjob/first", owned="Orphan")
    gangs.shows("gpu-training 1/8, total 1/16")


def test_a_gang_grows_by_what_is_free_and_shrinks(gangs: Gangs) -> None:
    gangs.apply(pytorchjob("first", 3))

    def workers(count: int) -> Tree:
        return {"spec": {"pytorchReplicaSpecs": {"Worker": {"replicas": count}}}}

    assert "PyTorchJob first asks for 10 GPUs (10 x 1); tenant gang has 8 of gpu-training left." in gangs.patch(
        "first", workers(9)
    ) or "gpu-training allows 8 GPUs; this PyTorchJob asks for 10 in all." in gangs.patch("first", workers(9))
    assert gangs.patch("first", workers(7)) == ""
    gangs.shows("gpu-training 0/8 (+8 reserved), total 0/16 (+8 reserved)")
    assert gangs.patch("first", workers(1)) == ""
    gangs.shows("gpu-training 0/8 (+2 reserved), total 0/16 (+2 reserved)")


def test_a_suspended_workload_is_booked_when_it_is_released(gangs: Gangs) -> None:
    gangs.apply(pytorchjob("first", 5))
    assert gangs.apply(pytorchjob("queued", 3, runPolicy={"suspend": True})) == ""
    gangs.shows("gpu-training 0/8 (+6 reserved), total 0/16 (+6 reserved)")
    release = {"spec": {"runPolicy": {"suspend": False}}}
    assert "PyTorchJob queued asks for 4 GPUs (4 x 1); tenant gang has 2 of gpu-training left." in gangs.patch(
        "queued", release
    )
    gangs.delete("pytorchjob/first")
    gangs.shows("gpu-training 0/8, total 0/16")
    assert gangs.patch("queued", release) == ""
    gangs.shows("gpu-training 0/8 (+4 reserved), total 0/16 (+4 reserved)")
    assert gangs.patch("queued", {"spec": {"runPolicy": {"suspend": True}}}) == ""
    gangs.shows("gpu-training 0/8, total 0/16")


def test_a_gang_that_cannot_run_within_its_quota_says_so(installed: Installed, namespace: str) -> None:
    """The gang is older than the TenantQuota and has lost a pod to preemption, and no slot is reserved for that pod."""
    gangs = Gangs(installed, namespace)
    gangs.apply(pytorchjob("old", 3))
    for number in range(3):
        gangs.pod(f"old-{number}", "old")

    def whole() -> Tree:
        conditions = installed.get("tenantquota/late", namespace)["status"]["conditions"]
        return next(each for each in conditions if each["type"] == "GangsWhole")

    installed.tenant("late", namespace, quotas=[{"gpus": "3"}])
    try:
        installed.eventually(lambda: whole()["status"] == "False", "the condition")
        old = f"PyTorchJob/old in {namespace}"
        sentence = f"{old} holds 3 of 4 GPUs: the quota has no room for the rest, so the gang can't run."
        assert whole()["message"].startswith(sentence)
        installed.eventually(lambda: "old" in events(installed, namespace, "GangStranded"), "the event on it")
        assert events(installed, namespace, "GangStranded")["old"].startswith(sentence)
        installed.tenant("late", namespace, quotas=[{"gpus": "4"}])
        installed.eventually(lambda: whole()["status"] == "True", "room for it")
        assert gangs.pod("old-3", "old") == ""
    finally:
        installed.api.delete("tenantquota/late")


def test_a_gang_is_demoted_as_a_whole(installed: Installed, namespace: str) -> None:
    rows = [{"tier": "gpu-training", "gpus": "2"}, {"gpus": "16"}]
    installed.tenant("lending", namespace, quotas=rows, onExceed="Demote")
    try:
        gangs = Gangs(installed, namespace)
        sentence = gangs.apply(pytorchjob("wide", 3))
        assert (
            "tenant lending has no room for it in gpu-training: all pods of this PyTorchJob run as gpu-batch"
            in sentence
        )
        for number in range(4):
            gangs.pod(f"wide-{number}", "wide")
        pods = installed.get("pods", namespace)["items"]
        assert {each["spec"]["priorityClassName"] for each in pods} == {"gpu-batch"}
        assert len(pods) == 4
    finally:
        installed.api.delete("tenantquota/lending")


def test_every_kind_of_gang_and_its_pods_get_one_answer(installed: Installed, namespace: str) -> None:
    """All at once, in a tenant of just as many GPUs as they ask for. No operator runs, the test makes the pods."""
    served = {(each.group, each.kind, version) for each in WORKLOAD_KINDS for version in each.versions}
    ours = [gang for gang in GANGS.values() if version_of(gang.json()) in served]
    gangs = {f"gang-{number}": gang for number, gang in enumerate(ours)}
    assert len({gang.json()["kind"] for gang in gangs.values()}) > 6
    total = sum(asked(pod) for gang in gangs.values() for pod in pods_of(gang))
    installed.tenant("kinds", namespace, quotas=[{"gpus": str(total)}])
    try:
        uids = created(installed, namespace, [applied(gang, name) for name, gang in gangs.items()])
        installed.eventually(lambda: installed.usage("kinds") == f"total 0/{total} (+{total} reserved)", "all reserved")
        pods = [member(pod, name, uids[name]) for name, gang in gangs.items() for pod in pods_of(gang)]
        assert len(created(installed, namespace, pods)) == len(pods)
        installed.eventually(lambda: installed.usage("kinds") == f"total {total}/{total}", "all used")
        refused = installed.create(gpu_pod("another"), namespace)
        assert f"the total is at {total} of {total} GPUs; this pod asks for 1." in refused.stderr
    finally:
        installed.api.delete("tenantquota/kinds")


def version_of(tree: Tree) -> tuple[str, str, str]:
    group, _, version = tree["apiVersion"].rpartition("/")
    return group, tree["kind"], version


def created(installed: Installed, namespace: str, trees: list[Tree]) -> dict[str, str]:
    """Create all of them with kubectl and return their uids by name; an error fails the test."""
    answer = installed.create({"apiVersion": "v1", "kind": "List", "items": trees}, namespace)
    assert answer.code == 0, answer.stderr
    return {each["metadata"]["name"]: each["metadata"]["uid"] for each in answer.json()["items"]}


def applied(gang: WorkloadBuilder, name: str) -> Tree:
    """Return the gang as a user writes it."""
    return {**gang.json(), "metadata": {"name": name}}


def member(pod: Tree, gang: str, uid: str) -> Tree:
    """A pod as its operator makes it, for a node that there is not."""
    metadata = {**pod["metadata"], "namespace": None, "name": None, "generateName": f"{gang}-"}
    owner = {**metadata["ownerReferences"][0], "name": gang, "uid": uid}
    containers = [{"image": "registry.example/work:1", **each} for each in pod["spec"]["containers"]]
    spec = {**pod["spec"], "containers": containers, "nodeSelector": {"kubernetes.io/hostname": "nowhere"}}
    return {**pod, "metadata": {**metadata, "ownerReferences": [owner]}, "spec": spec}
