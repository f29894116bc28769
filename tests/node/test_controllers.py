"""Pods that controllers make: a gang of two ranks that is preempted, in part or whole, and Deployments rolled out.

The ranks are two pods with a hook each, and meet through a headless Service. What an all-reduce does for a real run,
programs/all_ranks.py does in a byte over TCP.
"""

from collections.abc import Sequence
from pathlib import Path

import pytest

from demonstration.preemption import GPUS
from demonstration.programs import CRITICAL
from demonstration.workloads import Tree, create, gpu_pod, keeping_data, training_job
from localcluster.node import NodeCluster
from localcluster.waiting import wait_until

from .backoff import forget_the_backoff
from .together import SECONDS, publish_programs

pytestmark = [pytest.mark.node, pytest.mark.usefixtures("release")]

FILE_HOOK = {"gpu-tiers.dev/checkpoint": "file", "gpu-tiers.dev/checkpoint-timeout": "60"}
SLEEP_HOOK = {"gpu-tiers.dev/checkpoint": "sleep"}
FAILED = "FailedPreStopHook"
RANKS = 2


def headless(job: str) -> Tree:
    """The Service by which the pods of a Job find each other, ready or not."""
    described = {"selector": {"job-name": job}, "clusterIP": "None", "publishNotReadyAddresses": True}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": job}, "spec": described}


def gang(folder: Path) -> Tree:
    """An Indexed Job. The rank that nobody preempted ends with 143 as well, which must not count as a failure."""
    pod = gpu_pod("unused", "python3", "/code/rank.py", tier="gpu-batch", subdomain="ranks")
    job = training_job(keeping_data(pod, folder), FILE_HOOK)
    job["metadata"]["name"] = "ranks"
    job["spec"] |= {"completions": RANKS, "parallelism": RANKS, "completionMode": "Indexed"}
    with_the_others = {"action": "Ignore", "onExitCodes": {"operator": "In", "values": [143]}}
    job["spec"]["podFailurePolicy"]["rules"].append(with_the_others)
    return job


def deployment(name: str, pod: Tree, annotations: Tree, **spec: object) -> Tree:
    """A Deployment of one pod."""
    labels = {"app": name}
    template = {"metadata": {"labels": labels | pod["metadata"]["labels"], "annotations": annotations}}
    pod["spec"]["restartPolicy"] = "Always"
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {"selector": {"matchLabels": labels}, "template": template | {"spec": pod["spec"]}, **spec},
    }


def journal_of(folder: Path) -> list[list[str]]:
    """The lines of the journal, in words."""
    file = folder / "journal"
    return [line.split() for line in file.read_text().splitlines()] if file.exists() else []


def pods_with_event(node: NodeCluster, namespace: str, reason: str) -> list[str]:
    """The pods that events of a reason speak of."""
    found = node.api.get("events", namespace)["items"]
    return [each["involvedObject"]["name"] for each in found if each["reason"] == reason]


def preempt(node: NodeCluster, namespace: str, folder: Path, gpus: int) -> None:
    """Take so many GPUs and give them back, once whoever had them is gone."""
    critical = gpu_pod("critical", "python3", "-c", CRITICAL, gpus=gpus, tier="gpu-serving")
    before = len(journal_of(folder))
    create(node, namespace, keeping_data(critical, folder))
    node.kubectl("wait", "--for=condition=Ready", "pod/critical", f"--namespace={namespace}", f"--timeout={SECONDS}s")
    wait_until(lambda: ends(journal_of(folder)[before:]) == RANKS, SECONDS, "the end of all ranks")
    node.api.delete("pod/critical", namespace=namespace)


def ends(lines: Sequence[Sequence[str]]) -> int:
    return sum(line[2] == "ends" for line in lines)


def test_a_gang_saves_the_same_step_however_many_of_it_are_preempted(
    node: NodeCluster, namespace: str, data: Path
) -> None:
    publish_programs(node, namespace)
    create(node, namespace, headless("ranks"))
    create(node, namespace, gang(data))
    begun = "0"
    for life, (gpus, in_the_way) in enumerate(((GPUS - 1, 1), (GPUS, RANKS))):
        first = life * 3 * RANKS
        wait_until(lambda: len(journal_of(data)) == first + RANKS, SECONDS, "both ranks")  # noqa: B023 - called at once
        before = len(pods_with_event(node, namespace, "Preempted"))
        preempt(node, namespace, data, gpus)
        assert len(pods_with_event(node, namespace, "Preempted")) == before + in_the_way
        lines = journal_of(data)[first:]
        assert [line[2] for line in lines[: 3 * RANKS]] == ["begins"] * RANKS + ["saved"] * RANKS + ["ends"] * RANKS
        assert {line[3] for line in lines[:RANKS]} == {begun}, "they begin where they had stopped"
        saved = {line[3] for line in lines[RANKS : 3 * RANKS]}
        assert len(saved) == 1, "one step, and none after it"
        (begun,) = saved
        forget_the_backoff(node)
    job = node.api.get("job/ranks", namespace)
    assert not job["status"].get("conditions"), "the Job goes on"
    assert not pods_with_event(node, namespace, FAILED)


def test_a_rollout_saves(node: NodeCluster, namespace: str, data: Path) -> None:
    publish_programs(node, namespace)
    pod = keeping_data(gpu_pod("unused", "python3", "/code/by_file.py", tier="gpu-batch"), data)
    create(node, namespace, deployment("training", pod, FILE_HOOK, strategy={"type": "Recreate"}))
    wait_until(lambda: journal_of(data) == [["started"]], SECONDS, "the first pod")
    node.kubectl("rollout", "restart", "deployment/training", f"--namespace={namespace}")
    wait_until(lambda: len(journal_of(data)) == 4, SECONDS, "the next pod")
    assert journal_of(data) == [["started"], ["asked"], ["saved"], ["started"]]
    assert not pods_with_event(node, namespace, FAILED)


def test_a_rolled_out_serving_pod_answers_those_who_still_find_it(
    node: NodeCluster, namespace: str, data: Path
) -> None:
    publish_programs(node, namespace)
    pod = keeping_data(gpu_pod("unused", "python3", "/code/serve.py", tier="gpu-serving"), data)
    pod["spec"]["containers"][0]["readinessProbe"] = {"httpGet": {"port": 8000}, "periodSeconds": 1}
    create(node, namespace, deployment("model", pod, SLEEP_HOOK))
    here = f"--namespace={namespace}"
    node.kubectl("rollout", "status", "deployment/model", here, f"--timeout={SECONDS}s")
    old = node.kubectl("get", "pods", here, "--output=jsonpath={.items[0].metadata.name}").stdout
    node.kubectl("rollout", "restart", "deployment/model", here)
    terminating = "--for=jsonpath={.metadata.deletionTimestamp}"
    node.kubectl("wait", terminating, f"pod/{old}", here, f"--timeout={SECONDS}s")
    node.kubectl("get", f"--raw=/api/v1/namespaces/{namespace}/pods/{old}:8000/proxy/late")
    node.kubectl("wait", "--for=delete", f"pod/{old}", here, f"--timeout={SECONDS}s")
    journal = (data / "journal").read_text().splitlines()
    assert journal.index(f"{old} answers /late") < journal.index("told to end")
    assert not pods_with_event(node, namespace, FAILED)
