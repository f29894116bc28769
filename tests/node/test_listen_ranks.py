"""An unmodified Trainer program under torchrun in two pods: one pod is evicted, and the run loses no step."""

import json
import re
from pathlib import Path

import pytest

from demonstration.frameworks import stock_programs, with_frameworks
from demonstration.preemption import GPUS
from demonstration.programs import CRITICAL
from demonstration.steps import last_step, learned, starts
from demonstration.watching import Watched, reasons
from demonstration.workloads import Tree, create, gpu_pod, keeping_data, publish_code, training_job
from localcluster.node import NodeCluster
from localcluster.waiting import wait_until
from tests.frameworks.environments import torch_in_pods

from .backoff import forget_the_backoff
from .test_controllers import headless

pytestmark = [
    pytest.mark.node,
    pytest.mark.release,
    pytest.mark.usefixtures("release"),
    pytest.mark.timeout(3600),  # it may install torch
]

LISTEN = {"gpu-tiers.dev/checkpoint": "listen", "gpu-tiers.dev/checkpoint-timeout": "60"}
PROGRESS = re.compile(r"^gpu-tiers: progress (\{.*\})$", re.MULTILINE)
RANKS, STEPS, SECONDS = 2, 150, 240


def torchrun(name: str, folder: Path, step_seconds: float) -> Tree:
    """An Indexed Job whose pods are the nodes of a torchrun. It says nothing of failures: the webhook does."""
    options = json.dumps({"steps": STEPS, "sleep": step_seconds})
    where = f"--nnodes={RANKS} --nproc-per-node=1 --node-rank=$JOB_COMPLETION_INDEX --master-addr={name}-0.{name}"
    run = f"$FRAMEWORKS/python -m torch.distributed.run {where} --master-port=29500 /code/stock_huggingface.py"
    shell = f"cd /data; exec {run} '{options}' >> /data/steps 2>> /data/stderr-$JOB_COMPLETION_INDEX"
    pod = gpu_pod("unused", "sh", "-c", shell, tier="gpu-batch", subdomain=name)
    job = training_job(with_frameworks(keeping_data(pod, folder)), LISTEN)
    job["metadata"]["name"] = name
    job["spec"] |= {"completions": RANKS, "parallelism": RANKS, "completionMode": "Indexed"}
    del job["spec"]["podFailurePolicy"]
    return job


def begin(node: NodeCluster, namespace: str, folder: Path, step_seconds: float) -> None:
    folder.mkdir()
    create(node, namespace, headless(folder.name))
    create(node, namespace, torchrun(folder.name, folder, step_seconds))


def uids(node: NodeCluster, namespace: str, job: str) -> list[str]:
    found = node.api.get("pods", namespace, labelSelector=f"job-name={job}")["items"]
    return [each["metadata"]["uid"] for each in found]


def saved_by(watched: Watched, uid: str) -> int:
    """The step that a pod's termination message tells of."""
    messages = "\n".join(
        status["state"]["terminated"].get("message", "")
        for state in watched.states()
        if state["metadata"]["uid"] == uid
        for status in state.get("status", {}).get("containerStatuses", [])
        if "terminated" in status["state"]
    )
    return int(json.loads(PROGRESS.findall(messages)[-1])["last_saved_step"])


def test_both_pods_save_the_same_step_and_resume_there(node: NodeCluster, namespace: str, data: Path) -> None:
    torch_in_pods()
    publish_code(node, namespace, **stock_programs())
    begin(node, namespace, data / "undisturbed", 0)
    wait_until(lambda: learned(data / "undisturbed") is not None, SECONDS, "the end of the undisturbed run")
    folder = data / "ranks"
    begin(node, namespace, folder, 0.2)
    watched = Watched(node, namespace)
    try:
        wait_until(lambda: last_step(folder) >= 10, SECONDS, "ten steps")
        pods = uids(node, namespace, "ranks")
        critical = gpu_pod("critical", "python3", "-c", CRITICAL, gpus=GPUS - 1, tier="gpu-serving")
        create(node, namespace, keeping_data(critical, data))
        here = f"--namespace={namespace}"
        wait_until(lambda: all(watched.exit_codes(each) for each in pods), SECONDS, "the end of both pods")
        reached = last_step(folder)
        node.kubectl("wait", "--for=condition=Ready", "pod/critical", here, f"--timeout={SECONDS}s")
        node.api.delete("pod/critical", namespace=namespace)
        forget_the_backoff(node)
        (evicted,) = [each for each in pods if "Preempted" in reasons(node, namespace, each)]
        (other,) = {*pods} - {evicted}
        assert watched.exit_codes(other) == {143}
        assert watched.exit_codes(evicted) == {143}
        wait_until(lambda: learned(folder) is not None, SECONDS, "the end of the run")
        assert starts(folder) == [0, reached], "no step is lost"
        assert [saved_by(watched, each) for each in pods] == [reached] * RANKS
        assert learned(folder) == learned(data / "undisturbed")
    finally:
        watched.end()
