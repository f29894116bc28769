"""why-pending during an incident: its answer follows from cluster state, and events are only evidence."""

import re

import pytest

from localcluster.waiting import wait_until

from .asking import running, why
from .installed import Installed, gpu_deployment, gpu_job, gpu_pod
from .queue import QueueingTenant

pytestmark = pytest.mark.apiserver


def test_a_job_that_backs_off_says_who_evicted_its_pod_and_when_the_next_one_comes(
    installed: Installed, namespace: str, node: str
) -> None:
    nightly = gpu_job("nightly", 4, node)
    nightly["metadata"]["labels"] = {"gpu-tiers.dev/tier": "gpu-batch"}
    assert installed.create(nightly, namespace).code == 0
    installed.eventually(lambda: "1 of 1 run" in why(installed, namespace, "job/nightly"), "a full node")
    (pod,) = (each["metadata"]["name"] for each in installed.get("pods", namespace)["items"])
    assert installed.create(gpu_pod("urgent", 4, tier="gpu-training", node=node), namespace).code == 0
    installed.eventually(lambda: running(installed, namespace, "urgent"), "what evicts it")
    answers: list[str] = []

    def backs_off() -> bool:
        answers[:] = [why(installed, namespace, "job/nightly")]
        return "Its last pod was evicted." in answers[0]

    installed.eventually(backs_off, "its back-off")
    pause = r"(within \d+ seconds? \(10 seconds after the last one ended\)|at any moment)"
    assert re.search(rf"the next one {pause}\. Its pods so far: 1", answers[0])
    evicted = rf"Its last eviction: {namespace}/{pod} \(gpu-batch\) was evicted from {node} for {namespace}/urgent "
    assert re.search(evicted + r".*\(reported at \S+Z\)\.", answers[0])
    assert "no Event reports a refusal" not in answers[0]


def test_each_evicted_pod_of_a_gang_reads_who_took_its_gpus(installed: Installed, namespace: str, node: str) -> None:
    line = QueueingTenant(installed, namespace, node)
    line.create(line.job("sweep", pods=4, tier="gpu-batch"))
    installed.eventually(lambda: len(line.running()) == 4, "a full node")
    pods = line.running()
    line.create(line.pod("urgent", gpus=4))
    installed.eventually(lambda: "urgent" in line.running(), "what evicts them")
    evicted = re.compile(r"It is gone: (.+ was evicted from|the scheduler evicted it: Preempted by pod) ")
    installed.eventually(lambda: all(evicted.search(why(installed, namespace, pod)) for pod in pods), "their evictions")


def test_replicas_beyond_the_whole_quota_are_said_to_have_no_room_ever(
    installed: Installed, namespace: str, node: str
) -> None:
    """A scale of a Deployment is not judged, so nobody was told before."""
    labels = {"app": "chat"}
    template = {"metadata": {"labels": labels}, "spec": gpu_pod("", node=node)["spec"]}
    spec = {"replicas": 2, "selector": {"matchLabels": labels}, "template": template}
    chat = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "chat"}, "spec": spec}
    with installed.tenant_for(f"replicas-{namespace}", namespace, quotas=[{"gpus": 2}]):
        assert installed.create(chat, namespace).code == 0
        installed.eventually(lambda: len(installed.get("pods", namespace)["items"]) == 2, "two pods")
        assert "never have room" not in why(installed, namespace, "deployment/chat")
        installed.cluster.kubectl("scale", "deployment/chat", "--replicas=3", f"--namespace={namespace}")
        never = "All of its pods together never have room: "
        installed.eventually(lambda: never in why(installed, namespace, "deployment/chat"), "what is too large")
        assert "the total allows 2 GPUs; this Deployment asks for 3" in why(installed, namespace, "deployment/chat")


def test_a_job_that_runs_is_not_said_to_be_refused_because_a_change_of_it_was(
    installed: Installed, namespace: str, node: str
) -> None:
    assert installed.create(gpu_job("train", 1, node), namespace).code == 0
    installed.eventually(lambda: "1 of 1 run" in why(installed, namespace, "job/train"), "its pod")
    answer = installed.cluster.kubectl(
        "label", "job/train", "gpu-tiers.dev/tier=gpu-trainin", "--overwrite", f"--namespace={namespace}", check=False
    )
    assert answer.code == 1, answer.stdout
    told = re.compile(r"An update was refused at \S+Z, and changed nothing: .* unknown tier")
    installed.eventually(lambda: told.search(why(installed, namespace, "job/train")) is not None, "its Event")
    text = why(installed, namespace, "job/train")
    assert "None of its pods is pending: 1 of 1 run." in text
    assert "refused at admission" not in text


def test_a_cronjob_whose_jobs_are_refused_says_why(installed: Installed, namespace: str, node: str) -> None:
    """Its tier is taken from its tenant after it was applied, so that only its runs are refused."""
    with installed.tenant_for(f"cron-{namespace}", namespace) as name:
        run = {"metadata": {"labels": {"gpu-tiers.dev/tier": "gpu-training"}}, "spec": gpu_job("", 1, node)["spec"]}
        spec = {"schedule": "* * * * *", "jobTemplate": run}
        cron = {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "nightly"}, "spec": spec}
        answer = installed.create(cron, namespace)
        assert answer.code == 0, answer.stderr
        installed.tenant(name, namespace, maxTier="gpu-batch")
        text = ""

        def is_refused() -> bool:
            nonlocal text
            text = why(installed, namespace, "cronjob/nightly")
            return "refused" in text

        wait_until(is_refused, 90, "its first run", pause=3)
        assert "gpu-training is not for tenant" in text
        assert "There is room" not in text


def test_of_queued_replicas_as_many_start_as_the_row_has_room_for(
    installed: Installed, namespace: str, node: str
) -> None:
    """They start one by one, so that what they ask for together says nothing of the first."""
    quotas = [{"gpus": 3}]
    with installed.tenant_for(f"one-by-one-{namespace}", namespace, quotas=quotas, onExceed="Hold"):
        assert installed.create(gpu_job("first", 3, node), namespace).code == 0
        installed.eventually(lambda: "1 of 1 run" in why(installed, namespace, "job/first"), "a full row")
        assert installed.create(gpu_deployment("chat", 1, node, replicas=3), namespace).code == 0
        installed.cluster.kubectl("scale", "deployment/chat", "--replicas=4", f"--namespace={namespace}")
        said = "Its pods may use 3 of the 3 GPUs of the total, so at most 3 of its 4 queued pods can start"
        installed.eventually(lambda: said in why(installed, namespace, "deployment/chat"), "how many can start")
        assert "never" not in why(installed, namespace, "deployment/chat")
        installed.cluster.api.delete("job/first", namespace=namespace)
        own = "Its own pods use 3 of the 3 GPUs of the total, so waiting does not help: scale it down."
        installed.eventually(lambda: own in why(installed, namespace, "deployment/chat"), "three that run")


def test_a_daemonset_whose_pods_are_refused_says_so(installed: Installed, namespace: str) -> None:
    labels = {"app": "dcgm"}
    spec = gpu_pod("")["spec"] | {"nodeSelector": {"daemons": namespace}}
    template = {"metadata": {"labels": labels}, "spec": spec}
    daemons = {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "dcgm"}}
    daemons["spec"] = {"selector": {"matchLabels": labels}, "template": template}
    for name in (f"{namespace}-a", f"{namespace}-b"):
        installed.cluster.add_node(name, gpus=1)
        installed.cluster.api.label(f"node/{name}", {"daemons": namespace})
    with installed.tenant_for(f"daemons-{namespace}", namespace, quotas=[{"gpus": 1}]):
        assert installed.create(daemons, namespace).code == 0
        said = "1 of its 2 pods runs; 1 is refused at admission: "
        installed.eventually(lambda: said in why(installed, namespace, "daemonset/dcgm"), "the refusal")


def test_a_deployment_that_is_paused_later_still_makes_pods(installed: Installed, namespace: str, node: str) -> None:
    with installed.tenant_for(f"later-{namespace}", namespace, quotas=[{"gpus": 1}]):
        assert installed.create(gpu_deployment("chat", 1, node), namespace).code == 0
        installed.eventually(lambda: "1 of 1 run" in why(installed, namespace, "deployment/chat"), "its pod")
        installed.cluster.api.patch("deployment/chat", {"spec": {"paused": True, "replicas": 0}}, namespace)
        installed.eventually(lambda: not installed.get("pods", namespace)["items"], "no pod")
        assert installed.create(gpu_job("other", 1, node), namespace).code == 0
        installed.cluster.api.patch("deployment/chat", {"spec": {"replicas": 1}}, namespace)
        said = "Its pods are refused at admission: "
        installed.eventually(lambda: said in why(installed, namespace, "deployment/chat"), "the refusal")
        assert "paused" not in why(installed, namespace, "deployment/chat")
