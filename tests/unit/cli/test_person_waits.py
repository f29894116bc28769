"""A person asks why a workload does not go on: first what happens and what to do, by the state of the cluster."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.builders import a_deployment, a_job, a_pod, a_podgroup, a_tenant, policy_file
from tests.builders.api import ApiOfObjects
from tests.builders.built import Built, Tree
from tests.builders.pods import GPU
from tests.unit.cli.conftest import Answering
from tests.unit.cli.person import asked
from tests.unit.cli.test_few_rights import reader
from tests.unit.cli.test_person_asks import NODES, PODS, a_stored_pod, lists, says
from webhook.cli.cluster.target import ASK_FOR_CLUSTER_READER
from webhook.kube.errors import Forbidden
from webhook.policy.checkpoint.listen import REPORT_VOLUME

DEPLOYMENTS, REPLICASETS = "/apis/apps/v1/deployments", "/apis/apps/v1/replicasets"
JOBS = "/apis/batch/v1/jobs"
TIER = {"gpu-tiers.dev/tier": "gpu-batch"}
OVER_QUOTA = 'admission webhook "pods.validate.gpu-tiers.dev" denied the request: exceeded quota: no room [over-quota]'


def owned(tree: Tree, kind: str, name: str, api_version: str = "apps/v1") -> Tree:
    owner = {"apiVersion": api_version, "kind": kind, "name": name, "uid": f"uid-{name}", "controller": True}
    metadata = tree["metadata"] | {"ownerReferences": [owner], "creationTimestamp": "2026-11-26T16:00:00Z"}
    return tree | {"metadata": metadata}


def stored(tree: Tree) -> Tree:
    name = tree["metadata"]["name"]
    return tree | {"metadata": tree["metadata"] | {"uid": f"uid-{name}", "creationTimestamp": "2026-11-26T16:00:00Z"}}


def an_event(reason: str, kind: str, name: str, message: str, at: str = "2026-11-26T17:00:00Z", **more: object) -> Tree:
    about = {"kind": kind, "name": name, "namespace": "team-alpha", "uid": f"uid-{name}"}
    about["apiVersion"] = "apps/v1" if kind == "ReplicaSet" else "batch/v1" if kind == "Job" else "v1"
    metadata = {"name": f"{name}.{reason}.{at}", "namespace": "team-alpha"}
    times = {"firstTimestamp": at, "lastTimestamp": at, "count": 1}
    return {"metadata": metadata, "involvedObject": about, "reason": reason, "message": message, **times, **more}


def a_full_row(used: str, hard: str = "2", **spec: object) -> Tree:
    conditions = [{"type": each, "status": "True"} for each in ("Ready", "Exact", "GangsWhole")]
    usage = [{"tier": "gpu-batch", "hard": hard, "used": used}]
    return a_tenant(**spec).allowing(hard, tier="gpu-batch").json() | {
        "status": {"usage": usage, "conditions": conditions}
    }


def a_rollout(quota: Tree, *, unavailable: object = "25%", gated: bool = False) -> ApiOfObjects:
    """A Deployment of one pod of 2 GPUs, whose new ReplicaSet has no pod that runs."""
    template = a_pod().asking(2).having("metadata.labels", TIER)
    web = stored(a_deployment(template, "web").json())
    web["metadata"]["labels"] = TIER
    web["spec"]["strategy"] = {"rollingUpdate": {"maxSurge": "25%", "maxUnavailable": unavailable}}
    web["status"] = {"replicas": 2 if gated else 1, "updatedReplicas": 1 if gated else 0}
    sets = [
        owned({"metadata": {"name": each, "namespace": "team-alpha", "uid": f"uid-{each}"}}, "Deployment", "web")
        for each in ("web-1", "web-2")
    ]
    pods = [owned(a_stored_pod("old", node="node-a", phase="Running"), "ReplicaSet", "web-1")]
    pods += [owned(a_stored_pod("new", gate="gpu-tiers.dev/quota"), "ReplicaSet", "web-2")] if gated else []
    refused = an_event(
        "FailedCreate",
        "ReplicaSet",
        "web-2",
        OVER_QUOTA,
    )
    events = [] if gated else [refused]
    there = lists(*pods, quotas=(quota,), **{DEPLOYMENTS: [web], REPLICASETS: sets})
    return ApiOfObjects(there | {"/api/v1/events": events})


@pytest.mark.parametrize(("on_exceed", "gated"), [("Deny", False), ("Hold", True)])
def test_a_rollout_that_waits_for_its_own_old_pod_is_stuck(
    answering: Answering, tmp_path: Path, on_exceed: str, gated: bool
) -> None:
    api = a_rollout(a_full_row("2", onExceed=on_exceed), gated=gated)
    first, *others = says(answering, tmp_path, api, "why-pending", "deployment/web")[2:]
    assert first == (
        "The rollout is stuck: its old pods use the quota that its new pods need, so waiting does not help. To have it "
        "replace pods one by one: kubectl patch deployment web -n team-alpha -p "
        """'{"spec":{"strategy":{"rollingUpdate":{"maxSurge":0,"maxUnavailable":1}}}}'"""
    )
    assert "kubectl annotate" not in "\n".join(others)
    assert "by itself" not in "\n".join(others)


@pytest.mark.parametrize(
    ("quota", "unavailable"), [(a_full_row("4", "4"), "25%"), (a_full_row("2"), 1)], ids=["others' pods", "no surge"]
)
def test_a_rollout_that_goes_on_by_itself_is_not_called_stuck(
    answering: Answering, tmp_path: Path, quota: Tree, unavailable: object
) -> None:
    lines = says(answering, tmp_path, a_rollout(quota, unavailable=unavailable), "why-pending", "deployment/web")
    assert "stuck" not in "\n".join(lines)


def test_a_refused_update_is_not_taken_for_refused_pods(answering: Answering, tmp_path: Path) -> None:
    """Somebody mistyped a label. The Job is suspended, so it has no pod, and nothing tries again."""
    words = 'Job/night.metadata.labels[gpu-tiers.dev/tier]: unknown tier "gold"; known tiers: gpu-batch [unknown-tier]'
    refused = an_event("UpdateRefused", "Job", "night", words, "2026-11-26T17:01:00Z")
    api = an_evicted_job(refused, spec={"suspend": True}, status={})
    lines = says(answering, tmp_path, api, "why-pending", "job/night")[2:]
    assert lines[-1] == f"An update was refused at 2026-11-26T17:01:00Z, and changed nothing: {words}"
    assert "refused at admission" not in "\n".join(lines)
    assert "kubectl annotate" not in "\n".join(lines)


@pytest.mark.parametrize(("manager", "is_news"), [("kubectl", False), ("kubelet", True)])
def test_a_refused_update_is_old_news_once_a_later_one_was_admitted(
    answering: Answering, tmp_path: Path, manager: str, is_news: bool
) -> None:
    written = {"manager": manager, "time": "2026-11-26T17:02:00Z"} | ({"subresource": "status"} if is_news else {})
    refused = an_event("UpdateRefused", "Job", "night", "unknown tier", "2026-11-26T17:01:00Z")
    job = stored(a_job(a_pod().asking(2), "night", suspend=True).json())
    job["metadata"]["managedFields"] = [written]
    api = ApiOfObjects(lists(**{JOBS: [job]}) | {"/api/v1/events": [refused]})
    assert ("unknown tier" in "\n".join(says(answering, tmp_path, api, "why-pending", "job/night"))) is is_news


WANTS_NONE = {
    "suspended": (a_job(a_pod().asking(2), "night", suspend=True), JOBS, "It is suspended (spec.suspend), so it has"),
    "parallelism 0": (a_job(a_pod().asking(2), "night", parallelism=0), JOBS, "It asks for no pod: its count is 0."),
    "scaled to 0": (a_deployment(a_pod().asking(2), "night", 0), DEPLOYMENTS, "It asks for no pod: its count is 0."),
}


@pytest.mark.parametrize(("workload", "where", "said"), WANTS_NONE.values(), ids=WANTS_NONE)
def test_an_old_refusal_does_not_outlive_the_want(
    answering: Answering, tmp_path: Path, workload: Built, where: str, said: str
) -> None:
    """Its pods were refused, and then somebody scaled it down: nothing is tried again."""
    tree = stored(workload.json())
    tree["metadata"]["labels"] = TIER
    kind = tree["kind"]
    owner = {"metadata": {"name": "night-1", "namespace": "team-alpha", "uid": "uid-night-1"}}
    maker = "ReplicaSet" if kind == "Deployment" else "Job"
    refused = an_event("FailedCreate", maker, "night-1" if kind == "Deployment" else "night", OVER_QUOTA, before(60))
    there = lists(quotas=(a_full_row("0"),), **{where: [tree], REPLICASETS: [owned(owner, "Deployment", "night")]})
    api = ApiOfObjects(there | {"/api/v1/events": [refused]})
    lines = says(answering, tmp_path, api, "why-pending", f"{kind.lower()}/night")[2:]
    assert len(lines) == 1
    assert lines[0].startswith(said)
    assert "was refused" not in "\n".join(says(answering, tmp_path, api, "explain", f"{kind.lower()}/night"))


# --- a person who may read the namespace alone


def test_who_may_not_read_nodes_reads_what_the_pod_waits_for_and_whom_to_ask(
    answering: Answering, tmp_path: Path
) -> None:
    pod = owned(a_stored_pod("b1-x"), "Job", "b1", "batch/v1")
    words = "0/9 nodes are available: 9 Insufficient nvidia.com/gpu."
    pod["status"]["conditions"] = [{"type": "PodScheduled", "status": "False", "message": words}]
    job = stored(a_job(a_pod().asking(2).having("metadata.labels", TIER), "b1").json())
    api = ApiOfObjects(lists(pod, **{JOBS: [job]}), [NODES, PODS])
    lines = says(answering, tmp_path, api, "why-pending", "job/b1")
    assert lines[2:5] == [
        "It waits for 2 free nvidia.com/gpu on one node; it starts by itself when there is room.",
        "Its pod b1-x is pending.",
        f"The scheduler says: {words}",
    ]
    assert "gpu-tiers-cluster-reader" not in "\n".join(lines)


def test_who_may_read_nodes_reads_which_accept_it_and_what_its_own_team_holds_there(
    answering: Answering, tmp_path: Path
) -> None:
    pod = a_stored_pod("b1")
    pod["spec"] |= {"nodeSelector": {"zone": "a"}, "preemptionPolicy": "Never"}
    pod["status"]["conditions"] = [{"type": "PodScheduled", "status": "False", "message": "0/2 nodes are available"}]
    fill = a_stored_pod("fill", node="gpu-a", phase="Running")
    nodes = [
        {"metadata": {"name": f"gpu-{zone}", "labels": {"zone": zone}}, "status": {"allocatable": {GPU: "8"}}}
        for zone in ("a", "b")
    ]
    api = ApiOfObjects(lists(pod, fill, **{NODES: nodes}), [PODS])
    lines = says(answering, tmp_path, api, "why-pending", "b1")
    assert lines[2:5] == [
        "It waits for 2 free nvidia.com/gpu on one node: only gpu-a accepts it.",
        "Pods of its namespace use 2 of the 8 GPUs there: team-alpha/fill.",
        (
            "Its tier gpu-batch evicts nobody (preemptionPolicy Never): it starts when pods there end; another tier "
            "may evict them."
        ),
    ]
    assert "you lack the right to list pods in all namespaces" in "\n".join(lines)


def test_whose_own_team_holds_all_gpus_there_lacks_nothing(answering: Answering, tmp_path: Path) -> None:
    pod, fill = a_stored_pod("b1"), a_stored_pod("fill", node="gpu-a", phase="Running")
    pod["status"]["conditions"] = [{"type": "PodScheduled", "status": "False", "message": "0/1 nodes are available"}]
    node = {"metadata": {"name": "gpu-a"}, "status": {"allocatable": {GPU: "2"}}}
    api = ApiOfObjects(lists(pod, fill, **{NODES: [node]}), [PODS])
    text = "\n".join(says(answering, tmp_path, api, "why-pending", "b1"))
    assert "Pods of its namespace use 2 of the 2 GPUs there: team-alpha/fill." in text
    assert "unknown" not in text


@pytest.mark.parametrize("hidden", [[], [PODS]], ids=["an administrator", "a reader of the namespace"])
def test_a_pod_whose_group_is_not_whole_waits_for_no_gpus(
    answering: Answering, tmp_path: Path, hidden: list[str]
) -> None:
    """The scheduler looks at no node before the group has its minCount."""
    pod = a_stored_pod("b1-0")
    pod["spec"]["schedulingGroup"] = {"podGroupName": "b1"}
    group = a_podgroup("b1").json()
    nodes = [{"metadata": {"name": name}, "status": {"allocatable": {GPU: "8"}}} for name in ("gpu-a", "gpu-b")]
    groups = {"/apis/scheduling.k8s.io/v1/podgroups": [group]}
    api = ApiOfObjects(lists(pod, **{NODES: nodes}, **groups), hidden)
    lines = says(answering, tmp_path, api, "why-pending", "b1-0")
    assert "1 of these 2 pods exist: the scheduler waits for the others." in lines
    assert "free nvidia.com/gpu" not in "\n".join(lines)


def test_who_may_not_patch_pods_reads_which_role_may(answering: Answering, tmp_path: Path) -> None:
    """The roles of gpu-tiers only read."""
    pod = a_stored_pod("trains", node="node-a", phase="Running")
    pod["spec"]["volumes"] = [{"name": REPORT_VOLUME, "projected": {}}]
    policy = tmp_path / "policy.yaml"
    policy.write_text(policy_file(preset="four-tier"))
    command = ("save", "trains", "--namespace=team-alpha", f"--policy={policy}")
    server = answering(ApiOfObjects(lists(pod)))
    code, text = asked(tmp_path, server, {"token": "hers"}, *command)
    assert code == 2
    assert "--clusterrole=edit --user=NAME --namespace=team-alpha" in " ".join(text.split())
    assert "gpu-tiers-" not in text


@pytest.mark.parametrize("command", ["why-pending", "explain"])
def test_the_platform_team_is_asked_for_what_the_reader_role_does_not_show(command: str) -> None:
    where = reader()
    where.lacks("pods", "list pods in all namespaces", Forbidden("", 403, "", path=PODS), "who holds the GPUs")
    *_, last = where.missing(f"{command} job/b1 -n team-alpha")
    assert last == f"Your platform team may read it; ask them to run: gpu-tiers {command} job/b1 -n team-alpha"
    assert where.missing()[-1] == ASK_FOR_CLUSTER_READER, "of a command about the whole cluster"


async def test_a_person_who_lacks_one_right_of_several_reads_which() -> None:
    async def refused() -> None:
        raise Forbidden("", 403, "", path="/apis/policy/v1/poddisruptionbudgets")

    where = reader()
    await where.part("evictions", refused(), None, "who may be evicted for it")
    assert where.missing()[0] == (
        "Who may be evicted for it is unknown: you lack the right to list poddisruptionbudgets."
    )


# --- a Job whose pods are evicted

IGNORES = {"rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}]}


def before(seconds: int) -> str:
    return (datetime.now(UTC) - timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


def an_eviction(pod: str, at: str) -> Tree:
    sentence = f"team-alpha/{pod} (gpu-batch) was evicted from node-a for beta/urgent (gpu-training)"
    return an_event("PreemptionOutcome", "Job", "night", sentence, at, related={"kind": "Pod", "name": pod})


def an_evicted_job(*events: Tree, pods: tuple[Tree, ...] = (), spec: Tree, status: Tree) -> ApiOfObjects:
    night = stored(a_job(a_pod().asking(2).having("metadata.labels", TIER), "night", **spec).json())
    night |= {"status": status}
    return ApiOfObjects(lists(*pods, **{JOBS: [night]}) | {"/api/v1/events": [*events]})


ENDED = {"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded", "message": "reached the limit"}


def test_a_job_that_evictions_ended_reads_how_to_survive_them(answering: Answering, tmp_path: Path) -> None:
    ended = {"failed": 3, "conditions": [ENDED]}
    evictions = [an_eviction(f"night-{each}", f"2026-11-26T17:0{each}:00Z") for each in (1, 2)]
    api = an_evicted_job(*evictions, spec={"backoffLimit": 2}, status=ended)
    lines = says(answering, tmp_path, api, "why-pending", "job/night")[2:]
    assert lines[:2] == [
        (
            "It has failed: 2 evictions and 1 other failure used up its backoffLimit of 2. Delete it and apply it "
            "again with restartPolicy: Never and a podFailurePolicy that ignores DisruptionTarget."
        ),
        (
            "Its last eviction: team-alpha/night-2 (gpu-batch) was evicted from node-a for beta/urgent (gpu-training) "
            "(reported at 2026-11-26T17:02:00Z, the last of 2)."
        ),
    ]
    assert lines[2].startswith("It has failed (BackoffLimitExceeded: ")


def test_an_eviction_is_known_by_the_condition_of_a_pod_too(answering: Answering, tmp_path: Path) -> None:
    pod = owned(a_stored_pod("night-x", phase="Failed"), "Job", "night", "batch/v1")
    why = {"message": "Eviction API: evicting", "lastTransitionTime": "2026-11-26T17:01:00Z"}
    pod["status"]["conditions"] = [{"type": "DisruptionTarget", "status": "True"} | why]
    api = an_evicted_job(pods=(pod,), spec={"backoffLimit": 0}, status={"failed": 1, "conditions": [ENDED]})
    lines = says(answering, tmp_path, api, "why-pending", "job/night")[2:]
    assert lines[0].startswith("It has failed: 1 eviction used up its backoffLimit of 0.")
    assert lines[1] == "Its last eviction: at 2026-11-26T17:01:00Z, Pod/night-x: Eviction API: evicting."


def test_a_job_that_crashed_is_not_said_to_be_evicted(answering: Answering, tmp_path: Path) -> None:
    api = an_evicted_job(spec={}, status={"failed": 7, "conditions": [ENDED]})
    assert "eviction" not in "\n".join(says(answering, tmp_path, api, "why-pending", "job/night"))


@pytest.mark.parametrize(
    ("evictions", "spec", "failed", "most", "counted"),
    [
        (
            1,
            {"podFailurePolicy": IGNORES},
            0,
            10,
            "10 seconds after the last one ended). Its pods so far: 1 evicted (ignored by its podFailurePolicy).",
        ),
        (
            3,
            {"podFailurePolicy": IGNORES},
            0,
            40,
            "40 seconds after the last one ended). Its pods so far: 3 evicted (ignored by its podFailurePolicy).",
        ),
        (1, {}, 2, 20, "20 seconds after the last one ended). Its pods so far: 2 failed."),
    ],
)
def test_a_back_off_follows_from_the_failures_and_the_last_one(
    answering: Answering, tmp_path: Path, evictions: int, spec: Tree, failed: int, most: int, counted: str
) -> None:
    events = [an_eviction(f"night-{each}", before(1)) for each in range(evictions)]
    api = an_evicted_job(*events, spec=spec, status={"failed": failed})
    line = says(answering, tmp_path, api, "why-pending", "job/night")[2]
    assert line.startswith("Its last pod was evicted. The Job controller makes the next one within ")
    assert most / 2 < int(line.partition("within ")[2].split()[0]) <= most
    assert counted in line
    assert line.endswith("twice as long after each further one, and at most 10 minutes.")


# --- a Job whose label was changed while its pod is there


@pytest.mark.parametrize("asked_about", ["job/train", "train-x"])
def test_a_relabelled_job_and_its_pod_read_the_same_advice(
    answering: Answering, tmp_path: Path, asked_about: str
) -> None:
    pod = owned(a_stored_pod("train-x", node="node-a", phase="Running"), "Job", "train", "batch/v1")
    job = stored(a_job(a_pod().asking(2), "train").json())
    job["metadata"]["labels"] = {"gpu-tiers.dev/tier": "gpu-training"}
    api = ApiOfObjects(lists(pod, **{JOBS: [job]}))
    pod["metadata"] |= {"labels": {}, "annotations": {"gpu-tiers.dev/assigned-by": "label: the label on Job/train"}}
    text = "\n".join(says(answering, tmp_path, api, "explain", asked_about))
    assert (
        "What would change its tier: Existing pods keep gpu-batch; pods made later get gpu-training.\n"
        "To have it now: kubectl delete pod -n team-alpha -l batch.kubernetes.io/job-name=train"
    ) in text
    assert "TIER (one of" not in text


@pytest.mark.parametrize("asked_about", ["job/train", "train-x"])
def test_a_job_that_fails_by_one_deletion_is_not_to_have_its_pod_deleted(
    answering: Answering, tmp_path: Path, asked_about: str
) -> None:
    pod = owned(a_stored_pod("train-x", node="node-a", phase="Running"), "Job", "train", "batch/v1")
    pod["metadata"] |= {"labels": {}, "annotations": {"gpu-tiers.dev/assigned-by": "label: the label on Job/train"}}
    job = stored(a_job(a_pod().asking(2), "train", backoffLimit=0).json())
    job["metadata"]["labels"] = {"gpu-tiers.dev/tier": "gpu-training"}
    text = "\n".join(says(answering, tmp_path, ApiOfObjects(lists(pod, **{JOBS: [job]})), "explain", asked_about))
    assert ("To have it now, delete and apply job/train again with the label gpu-tiers.dev/tier=gpu-training.") in text
    assert "kubectl delete pod" not in text


def test_a_pod_whose_owner_was_deleted_without_it_reads_that(answering: Answering, tmp_path: Path) -> None:
    """Its tier came from the label on the Job: kubectl delete job train --cascade=orphan."""
    pod = a_stored_pod("train-x", node="node-a", phase="Running")
    pod["metadata"] |= {"annotations": {"gpu-tiers.dev/assigned-by": "label: the label on Job/train says gpu-batch"}}
    text = "\n".join(says(answering, tmp_path, ApiOfObjects(lists(pod)), "explain", "train-x"))
    assert ": the workload whose label gave this one its tier owns it no more\n" in text
    *_, advice = (line for line in text.splitlines() if "What would change its tier" in line)
    assert advice == (
        "What would change its tier: Create the pod again with the label gpu-tiers.dev/tier=TIER (one of gpu-training, "
        "gpu-serving). A pod keeps the tier it began with."
    )


# --- a pod that is gone


def test_explain_of_a_pod_that_is_gone_names_the_command_that_knows_why(answering: Answering, tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text(policy_file(preset="four-tier"))
    command = ("explain", "spot", "--namespace=team-alpha", f"--policy={policy}")
    code, text = asked(tmp_path, answering(ApiOfObjects(lists())), {"token": "hers"}, *command)
    assert code == 2
    assert 'there is no Pod "spot" in namespace team-alpha' in text
    assert "gpu-tiers why-pending spot -n team-alpha says whether it was evicted" in " ".join(text.split())
