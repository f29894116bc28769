"""An autoscaler's taint has an unmodified Trainer program save; then its node dies, and the next run goes on there."""

import json
import re
from pathlib import Path

import pytest

from demonstration.frameworks import stock_programs, with_frameworks
from demonstration.steps import last_step, learned, lines, starts
from demonstration.workloads import create, gpu_pod, keeping_data, publish_code, training_job
from localcluster.credentials import NODE
from localcluster.node import NodeCluster
from localcluster.waiting import wait_until
from tests.frameworks.environments import torch_in_pods

from .backoff import forget_the_backoff

pytestmark = [
    pytest.mark.node,
    pytest.mark.release,
    pytest.mark.usefixtures("release"),
    pytest.mark.timeout(3600),  # it may install torch
]

LISTEN = {"gpu-tiers.dev/checkpoint": "listen"}
STEPS, SECONDS = 400, 240
TAINT = "ToBeDeletedByClusterAutoscaler"
BY_GC = {"type": "DisruptionTarget", "status": "True", "reason": "DeletionByPodGC"}


def said(node: NodeCluster, namespace: str, reason: str) -> list[str]:
    found = node.api.get("events", namespace, fieldSelector=f"reason={reason}")["items"]
    return [each["message"] for each in found]


def test_a_training_saves_when_its_node_is_marked_and_goes_on_there_after_it_died(
    node: NodeCluster, namespace: str, data: Path
) -> None:
    torch_in_pods()
    publish_code(node, namespace, **stock_programs())
    options = json.dumps({"steps": STEPS, "sleep": 0.2, "arguments": {"save_strategy": "no"}})
    shell = f"cd /data; exec $FRAMEWORKS/python /code/stock_huggingface.py '{options}' >> /data/steps 2>> /data/stderr"
    template = with_frameworks(keeping_data(gpu_pod("unused", "sh", "-c", shell, tier="gpu-batch"), data))
    create(node, namespace, training_job(template, LISTEN))
    wait_until(lambda: last_step(data) >= 10, SECONDS, "ten steps")

    # 1. The node is marked. The training saves, which it never does by itself, and trains on.
    node.kubectl("taint", "node", NODE, f"{TAINT}=1800000000:NoSchedule")
    died = False
    try:
        wait_until(lambda: bool(said(node, namespace, "Saved")), SECONDS, "the event of its save")
        (event,) = said(node, namespace, "Saved")
        (step,) = map(int, re.findall(r"step (\d+)", event))
        wait_until(lambda: last_step(data) >= step + 5, SECONDS, "five steps more")
        assert starts(data) == [0], "it trained on"

        # 2. Its node dies without another word. The pod garbage collector fails and deletes the pods of such a node;
        #    here that is done for this pod alone, because the webhook runs on the same node.
        (running,) = node.api.get("pods", namespace, labelSelector="job-name=training")["items"]
        node.stop_kubelet()
        died = True
        node.kill_container(running["status"]["containerStatuses"][0]["containerID"])
        pod = f"pod/{running['metadata']['name']}"
        node.api.patch(pod, {"status": {"phase": "Failed", "conditions": [BY_GC]}}, namespace, part="status")
        node.api.delete(pod, namespace=namespace, seconds=0)
    finally:
        node.kubectl("taint", "node", NODE, f"{TAINT}-")
        if died:
            node.start_kubelet()

    # 3. The Job's next pod goes on from that checkpoint.
    forget_the_backoff(node)
    wait_until(lambda: len(starts(data)) == 2, SECONDS, "the Job's next pod")
    assert starts(data) == [0, step]
    wait_until(lambda: learned(data) is not None, SECONDS, "the end of the run")
    assert next(line["last"] for line in lines(data) if "last" in line) == STEPS
