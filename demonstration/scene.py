"""A small cluster on a busy morning, on fake nodes: two teams, running pods, refusals and evictions."""

import json
import signal
import time
from typing import Any

from installation.examples import EXAMPLES
from localcluster import ControlPlane
from localcluster.waiting import wait_until

H100 = {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}
GPUS = 8
SECONDS = 60
SECONDS_BETWEEN = 3
"""Seconds between two steps: what is closer in time belongs to one."""
Tree = dict[str, Any]


class Scene:
    """Plays the scene step by step, so that each picture shows the same."""

    def __init__(self, cluster: ControlPlane) -> None:
        self._cluster = cluster

    def set_up(self) -> None:
        """Create nodes, running pods and refused ones."""
        self._cluster.add_node("gpu-node-1", gpus=GPUS, labels=H100)
        self._example("deployment-vllm.yaml")
        wait_until(lambda: self._phases("team-beta") == ["Running"], SECONDS, "the model server")
        for name in ("gpu-node-2", "gpu-node-3"):
            self._cluster.add_node(name, gpus=GPUS)
        self._run("team-alpha", "sweep-0", 4, "gpu-batch", "gpu-node-2", command=["torchrun", "sweep.py"])
        self._run("team-alpha", "sweep-1", 4, "gpu-batch", "gpu-node-2", command=["torchrun", "sweep.py"])
        self._run("team-beta", "train-ranker-0", 8, "gpu-batch", "gpu-node-3", command=["torchrun", "train.py"])
        self._example("pod-interactive.yaml")
        self._run(
            "team-alpha", "pretrain-0", 4, "gpu-training", "gpu-node-2", instead_of="sweep-1", says="saved in 12 s"
        )
        self._run("team-beta", "vllm-rerank-0", 2, "gpu-serving", "gpu-node-3", instead_of="train-ranker-0")
        self._example("jobset-sweep.yaml")
        self._example("mpijob-allreduce.yaml")
        self._example("refused/pod-above-ceiling.yaml")
        self._example("refused/notebook-claims-training.yaml")
        self._create(self._pod("team-beta", "sweep-7", 7, "gpu-batch", "gpu-node-3"))  # waits: two of eight are taken
        time.sleep(SECONDS_BETWEEN)
        for _ in range(2):
            self._example("pytorchjob-llm-finetune.yaml")

    def add_a_deployment_that_comes_too_late(self) -> None:
        """Apply a Deployment that fits, then let another pod use its tenant's only GPU for serving."""
        container = {"name": "vllm", "image": "vllm/vllm-openai:v0.8.5", "resources": {"limits": {"nvidia.com/gpu": 1}}}
        labels, where = {"app": "draft-model"}, ("deployment/draft-model", "-n=team-alpha")
        template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
        spec = {"replicas": 1, "paused": True, "selector": {"matchLabels": labels}, "template": template}
        metadata = {"name": "draft-model", "namespace": "team-alpha"}
        self._create({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec})
        self._run("team-alpha", "embedder-0", 1, "gpu-serving", "gpu-node-1")
        self._cluster.kubectl("rollout", "resume", *where)
        refused = ("get", "events", "-n=team-alpha", "--field-selector=reason=FailedCreate", "-o=name")
        wait_until(lambda: bool(self._cluster.kubectl(*refused).stdout), SECONDS, "the refusal of its pod")

    def add_tenants(self, all_in_all: int) -> None:
        """Add idle tenants until there are `all_in_all`, as many as a large company has."""
        there = len(self._cluster.kubectl("get", "tenantquotas", "-o=name").stdout.split())
        spec = {"quotas": [{"gpus": 16}, {"tier": "gpu-training", "gpus": 8}], "onExceed": "Deny"}
        names = [f"group-{number:03}" for number in range(all_in_all - there)]
        items = [
            {
                "apiVersion": "gpu-tiers.dev/v1alpha1",
                "kind": "TenantQuota",
                "metadata": {"name": name},
                "spec": spec | {"namespaceSelector": {"matchLabels": {"example.com/tenant": name}}},
            }
            for name in names
        ]
        self._create({"apiVersion": "v1", "kind": "List", "items": items})

    def _example(self, name: str) -> None:
        self._cluster.kubectl("create", "-f", str(EXAMPLES / name), check=False)
        time.sleep(SECONDS_BETWEEN)

    def _run(
        self,
        namespace: str,
        name: str,
        gpus: int,
        tier: str,
        node: str,
        *,
        command: list[str] | None = None,
        instead_of: str | None = None,
        says: str = "nothing listens",
    ) -> None:
        """Run a pod on a node. The evicted one `says` how its save went, as its hook would on a real node."""
        pod = self._pod(namespace, name, gpus, tier, node, command)
        if instead_of:
            self._pause(signal.SIGSTOP)
        self._create(pod)
        if instead_of:
            self._end(namespace, instead_of, says)
            self._pause(signal.SIGCONT)
        self._cluster.kubectl(
            "wait", f"pod/{name}", f"-n={namespace}", "--for=jsonpath={.status.phase}=Running", f"--timeout={SECONDS}s"
        )
        time.sleep(SECONDS_BETWEEN)

    @staticmethod
    def _pod(namespace: str, name: str, gpus: int, tier: str, node: str, command: list[str] | None = None) -> Tree:
        container = {
            "name": "main",
            "image": "registry.example/work:1",
            "resources": {"limits": {"nvidia.com/gpu": gpus}},
        }
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": namespace, "labels": {"gpu-tiers.dev/tier": tier}},
            "spec": {
                "containers": [container | ({"command": command} if command else {})],
                "nodeSelector": {"kubernetes.io/hostname": node},
            },
        }

    def _end(self, namespace: str, name: str, says: str) -> None:
        """Act as the kubelet of a pod that is being evicted."""
        where = (f"pod/{name}", f"-n={namespace}")
        self._cluster.kubectl("wait", *where, "--for=jsonpath={.metadata.deletionTimestamp}", f"--timeout={SECONDS}s")
        ended = {"terminated": {"exitCode": 143, "message": f"gpu-tiers: {says}"}}
        status = {"name": "main", "image": "", "imageID": "", "ready": False, "restartCount": 0, "state": ended}
        patch = json.dumps({"status": {"phase": "Failed", "containerStatuses": [status]}})
        self._cluster.kubectl("patch", *where, "--subresource=status", "--type=merge", f"--patch={patch}")
        events = ("get", "events", f"-n={namespace}", "-o=name", "--field-selector")
        about = f"reason=PreemptionOutcome,involvedObject.name={name}"
        wait_until(lambda: bool(self._cluster.kubectl(*events, about).stdout), SECONDS, f"the outcome of {name}")

    def _pause(self, number: signal.Signals) -> None:
        """Stop or continue what answers for the fake nodes, which would end the pod without a word."""
        self._cluster.processes.named("kwok").popen.send_signal(number)

    def _create(self, tree: Tree) -> None:
        self._cluster.api.create(tree)

    def _phases(self, namespace: str) -> list[str]:
        found = self._cluster.api.get("pods", namespace)["items"]
        return [str(each["status"].get("phase")) for each in found]
