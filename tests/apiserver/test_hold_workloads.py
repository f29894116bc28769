"""Workloads of a tenant that holds, on a real control plane: what their controllers do while pods wait.

Each story is a row of the table in docs/queueing.md, `Workloads in the queue`.
"""

import json

import pytest

from tests.builders.claims import a_claim_template

from .asking import run
from .groups import a_gang, apply_gang, runs_whole
from .installed import Installed, Tree, gpu_pod
from .queue import GATE, QueueingTenant
from .test_changed_claims import devices_on
from .test_resource_claims import claiming

__all__ = ["devices_on"]

pytestmark = pytest.mark.apiserver

OTHERS = {"name": "kueue.x-k8s.io/admission"}


def applied(line: QueueingTenant, kind: str, name: str, gpus: int, **spec: object) -> str:
    """A workload of apps/v1 with pods of so many GPUs; what kubectl says of it."""
    pod = gpu_pod("", gpus, tier="gpu-batch", node=line.node)["spec"]
    labels = {"app": name, "gpu-tiers.dev/tier": "gpu-batch"}
    made = {"selector": {"matchLabels": {"app": name}}, "template": {"metadata": {"labels": labels}, "spec": pod}}
    tree = {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name}, "spec": {**made, **spec}}
    answer = line.installed.create(tree, line.namespace)
    assert answer.code == 0, answer.stderr
    return answer.stderr


def patch(line: QueueingTenant, what: str, change: Tree, part: str = "") -> None:
    line.installed.api.patch(what, change, line.namespace, part=part)


def condition(line: QueueingTenant, what: str, kind: str) -> Tree:
    conditions = line.installed.get(what, line.namespace)["status"].get("conditions", ())
    return next((each for each in conditions if each["type"] == kind), {})


def one_is_there(line: QueueingTenant, gpus: int = 8) -> None:
    """Another's pod, which holds the quota until it is deleted."""
    line.create(line.pod("there", gpus=gpus))
    line.eventually_runs("there")


def eventually_waits(line: QueueingTenant, pods: int = 1) -> None:
    line.installed.eventually(lambda: len(line.waiting()) == pods, f"{pods} that wait")


def test_a_rollout_with_surge_waits_beside_its_old_pod_and_goes_on_when_there_is_room(line: QueueingTenant) -> None:
    sentence = applied(line, "Deployment", "score", 8, progressDeadlineSeconds=2)
    assert "[queued-surge]" in sentence
    assert "strategy.rollingUpdate.maxSurge: 0" in sentence
    line.installed.eventually(lambda: len(line.running()) == 1, "its pod")
    before = line.running()
    where = (f"--namespace={line.namespace}", "deployment/score")
    line.installed.cluster.kubectl("set", "image", *where, "main=registry.example/work:2")
    eventually_waits(line)
    late = "ProgressDeadlineExceeded"
    line.installed.eventually(lambda: condition(line, where[1], "Progressing").get("reason") == late, late)
    assert line.running() == before
    why = run(line.installed, "why-pending", where[1], where[0]).stdout
    assert "The rollout is stuck: its old pods use the quota that its new pods need, so waiting does not help." in why
    line.installed.tenant(f"hold-{line.namespace}", line.namespace, quotas=[{"gpus": 16}], onExceed="Hold")
    line.installed.eventually(lambda: len(line.pods()) == 1 == len(line.running() - before), "the new pod alone")
    done = "NewReplicaSetAvailable"
    line.installed.eventually(lambda: condition(line, where[1], "Progressing")["reason"] == done, done)


def test_a_deployment_that_recreates_keeps_its_place(line: QueueingTenant) -> None:
    assert "[queued-surge]" not in applied(line, "Deployment", "score", 8, strategy={"type": "Recreate"})
    line.installed.eventually(lambda: len(line.running()) == 1, "its pod")
    before = line.running()
    line.create(line.pod("behind", tier="gpu-training"))
    eventually_waits(line)
    where = (f"--namespace={line.namespace}", "deployment/score")
    line.installed.cluster.kubectl("set", "image", *where, "main=registry.example/work:2")
    line.installed.eventually(lambda: len(line.running() - before) == 1, "one of the next")
    assert line.waiting() == {"behind"}


def test_a_statefulset_in_order_joins_the_line_pod_by_pod(line: QueueingTenant) -> None:
    one_is_there(line, gpus=4)
    with pytest.raises(AssertionError, match="the total allows 8 GPUs; this StatefulSet asks for 12 in all"):
        applied(line, "StatefulSet", "shards", 4, replicas=3, serviceName="shards")
    assert "[queued-in-order]" in applied(line, "StatefulSet", "shards", 4, replicas=2, serviceName="shards")
    line.eventually_runs("shards-0")
    line.installed.eventually(lambda: line.waiting() == {"shards-1"}, "the next, gated")
    line.delete("pod", "there")
    line.eventually_runs("shards-1")


def test_a_daemonsets_pod_waits_as_an_unavailable_one(line: QueueingTenant) -> None:
    one_is_there(line)
    assert "[queued-on-nodes]" in applied(line, "DaemonSet", "each", 1)
    eventually_waits(line)

    def is_unavailable() -> bool:
        status = line.installed.get("daemonset/each", line.namespace)["status"]
        return (status["desiredNumberScheduled"], status.get("numberUnavailable")) == (1, 1)

    line.installed.eventually(is_unavailable, "its status")
    line.delete("pod", "there")
    line.installed.eventually(lambda: not line.waiting(), "its gate, opened")


def test_the_deadline_of_a_queued_job_ends_it_and_the_queue_goes_on(line: QueueingTenant) -> None:
    one_is_there(line)
    job = line.job("short", pods=2)
    job["spec"]["activeDeadlineSeconds"] = 3
    answer = line.installed.create(job, line.namespace)
    assert "[queued-deadline] activeDeadlineSeconds 3 runs on while pods wait for quota" in answer.stderr
    eventually_waits(line, pods=2)
    line.create(line.pod("behind"))
    late = "DeadlineExceeded"
    line.installed.eventually(lambda: condition(line, "job/short", "Failed").get("reason") == late, late)
    line.installed.eventually(lambda: line.waiting() == {"behind"}, "the line without it")
    line.delete("pod", "there")
    line.eventually_runs("behind")


def test_a_suspended_job_has_no_pods_and_its_clock_begins_in_the_line(line: QueueingTenant) -> None:
    one_is_there(line)
    job = line.job("later", pods=2)
    job["spec"] |= {"suspend": True, "activeDeadlineSeconds": 3600}
    answer = line.installed.create(job, line.namespace)
    assert "[queued-deadline]" not in answer.stderr
    is_suspended = lambda: condition(line, "job/later", "Suspended").get("status") == "True"  # noqa: E731
    line.installed.eventually(is_suspended, "the Job, suspended")
    assert "startTime" not in line.installed.get("job/later", line.namespace)["status"]
    assert not line.waiting()
    where = ("job/later", f"--namespace={line.namespace}", "--type=merge")
    resumed = line.installed.cluster.kubectl("patch", *where, '--patch={"spec":{"suspend":false}}')
    assert "[queued-deadline]" in resumed.stderr
    eventually_waits(line, pods=2)
    has_begun = lambda: "startTime" in line.installed.get("job/later", line.namespace)["status"]  # noqa: E731
    line.installed.eventually(has_begun, "the beginning of its clock")
    line.delete("pod", "there")
    line.installed.eventually(lambda: len(line.running()) == 2, "the Job's pods")
    patch(line, "job/later", {"spec": {"suspend": True}})
    line.installed.eventually(lambda: not line.pods(), "no pods again")


def test_a_cronjob_that_forbids_skips_a_run_while_one_waits(line: QueueingTenant) -> None:
    one_is_there(line)
    spec = {"schedule": "0 * * * *", "concurrencyPolicy": "Allow", "jobTemplate": {"spec": line.job("", 1)["spec"]}}
    cron: Tree = {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "hourly"}, "spec": spec}
    assert "[queued-schedule]" in line.installed.create(cron, line.namespace, dry_run=True).stderr
    spec["concurrencyPolicy"] = "Forbid"
    assert "[queued-schedule]" not in line.installed.create(cron, line.namespace).stderr
    for schedule in ("0 * * * *", "30 * * * *"):  # of each a run is due since long, so it begins now
        patch(line, "cronjob/hourly", {"spec": {"schedule": schedule}})
        missed = {"status": {"lastScheduleTime": "2024-01-01T00:15:00Z"}}
        patch(line, "cronjob/hourly", missed, "status")
        eventually_waits(line)
    skips = "reason=JobAlreadyActive,involvedObject.name=hourly"
    line.installed.eventually(lambda: bool(line.installed.messages(line.namespace, skips)), "a run, skipped")
    assert len(line.installed.get("jobs", line.namespace)["items"]) == 1
    line.delete("pod", "there")
    line.installed.eventually(lambda: len(line.running()) == 1, "the run that waited")


def test_a_queued_pod_takes_the_room_of_a_disruption_budget(line: QueueingTenant) -> None:
    one_is_there(line, gpus=4)
    applied(line, "ReplicaSet", "score", 4, replicas=2)
    line.installed.eventually(lambda: len(line.running()) == 2, "one of them")
    eventually_waits(line)
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "score"}}}
    budget = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "score"}, "spec": spec}
    line.create(budget)
    seen = lambda: line.installed.get("pdb/score", line.namespace).get("status", {})  # noqa: E731
    line.installed.eventually(lambda: seen().get("currentHealthy") == 1, "the budget, counted")
    (runs,), (gated,) = line.running() - {"there"}, line.waiting()
    assert "disruption budget" in evicted(line, runs)
    assert not evicted(line, gated)
    eventually_waits(line)
    line.delete("pod", "there")
    line.installed.eventually(lambda: seen().get("disruptionsAllowed") == 1, "room in the budget")
    assert not evicted(line, runs)


def evicted(line: QueueingTenant, pod: str) -> str:
    """Return why the API server does not evict it; "" where it does."""
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod, "namespace": line.namespace}}
    place = f"--raw=/api/v1/namespaces/{line.namespace}/pods/{pod}/eviction"
    return line.installed.cluster.kubectl("create", place, "-f", "-", input=json.dumps(eviction), check=False).stderr


def test_the_claim_of_a_queued_pod_is_there_and_pending(line: QueueingTenant, devices_on: str) -> None:
    one_is_there(line)
    line.create(a_claim_template("pair", 2).unplaced())
    line.create(claiming("asks", devices_on, resourceClaimTemplateName="pair"))
    claims = lambda: line.installed.get("resourceclaims", line.namespace)["items"]  # noqa: E731
    line.installed.eventually(lambda: bool(claims()), "its claim")
    assert line.waiting() == {"asks"}
    assert "allocation" not in claims()[0].get("status", {})
    line.delete("pod", "there")
    line.eventually_runs("asks")
    assert "allocation" in claims()[0]["status"]


def test_a_resourcequota_counts_queued_pods_in_full(line: QueueingTenant) -> None:
    one_is_there(line)
    spec = {"hard": {"requests.nvidia.com/gpu": "10"}}
    line.create({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "native"}, "spec": spec})
    used = lambda: line.installed.get("resourcequota/native", line.namespace)["status"].get("used", {})  # noqa: E731
    name = "requests.nvidia.com/gpu"
    line.installed.eventually(lambda: used().get(name) == "8", "the quota, counted")
    sentence = line.installed.create(line.job("sweep", pods=1), line.namespace).stderr
    assert "[queued-counted] ResourceQuota native also counts queued pods" in sentence
    line.installed.eventually(lambda: used()[name] == "9", "the Job's pod, counted")
    line.delete("job", "sweep")
    line.installed.eventually(lambda: used()[name] == "8", "the Job, gone again")
    line.create(line.pod("waits", gpus=2))
    line.installed.eventually(lambda: used()[name] == "10", "the queued pod in it")
    answer = line.installed.create(line.pod("late"), line.namespace)
    assert "exceeded quota: native" in answer.stderr
    assert line.waiting() == {"waits"}


def test_a_gang_of_kubernetes_own_kind_waits_and_goes_whole(line: QueueingTenant, version: str) -> None:
    one_is_there(line)
    apply_gang(line.installed, line.namespace, a_gang(version, "pretrain", "gpu-training", line.node))
    eventually_waits(line, pods=4)
    line.delete("pod", "there")
    line.installed.eventually(lambda: runs_whole(line.installed, line.namespace, "pretrain"), "all four")


def test_two_gates_are_opened_in_any_order(line: QueueingTenant) -> None:
    one_is_there(line)
    for name in ("approved-first", "approved-last"):
        pod = line.pod(name, gpus=4)
        pod["spec"]["schedulingGates"] = [OTHERS]
        line.create(pod)
    gates = lambda name: line.installed.get(f"pod/{name}", line.namespace)["spec"].get("schedulingGates")  # noqa: E731
    assert gates("approved-first") == [OTHERS, GATE]
    patch(line, "pod/approved-first", {"spec": {"schedulingGates": [GATE]}})
    line.delete("pod", "there")
    line.eventually_runs("approved-first")
    line.installed.eventually(lambda: gates("approved-last") == [OTHERS], "ours, opened by its name")
    assert line.running() == {"approved-first"}
    tenant = f"hold-{line.namespace}"
    line.installed.eventually(lambda: line.installed.usage(tenant) == "total 8/8", "both, counted")
    line.create(line.pod("next"))
    line.installed.eventually(lambda: line.status().get("queue", {}).get("pods") == 1, "who waits")
    patch(line, "pod/approved-last", {"spec": {"schedulingGates": []}})
    line.eventually_runs("approved-last")
    assert line.waiting() == {"next"}, "the last took nothing of the total: it was counted there before"


def test_our_gate_written_by_a_user_is_opened_where_nothing_is_queued(
    installed: Installed, namespace: str, wide: str
) -> None:
    free = QueueingTenant(installed, namespace, wide)
    for name, gates in (("nobodys", [GATE]), ("twos", [OTHERS, GATE])):
        free.create({**free.pod(name), "spec": {**free.pod(name)["spec"], "schedulingGates": gates}})
    free.eventually_runs("nobodys")
    installed.eventually(lambda: not free.waiting(), "ours, opened in a namespace of no tenant")
    with installed.tenant_for(f"denies-{namespace}", namespace, quotas=[{"gpus": 4}], onExceed="Deny"):
        free.create({**free.pod("own"), "spec": {**free.pod("own")["spec"], "schedulingGates": [GATE]}})
        free.eventually_runs("own")
        answer = installed.create({**free.pod("more", 2)}, namespace)
        assert "is at 3 of 4 GPUs" in answer.stderr
