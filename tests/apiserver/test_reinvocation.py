"""gpu-tiers beside another mutating webhook, called before it and after it: the pod comes out the same."""

import json
from pathlib import Path

import pytest

from .another_webhook import AnotherWebhook
from .installed import Installed, Tree, gpu_pod

pytestmark = pytest.mark.apiserver

SIDECAR = [{"op": "add", "path": "/spec/containers/-", "value": {"name": "mesh", "image": "registry.example/mesh:1"}}]
GPUS = [{"op": "add", "path": "/spec/containers/0/resources", "value": {"limits": {"nvidia.com/gpu": "1"}}}]
CHECK: Tree = {
    "name": "preflight-dcgm-diag",
    "image": "registry.example/dcgm-diag:1",
    "resources": {
        "limits": {"nvidia.com/gpu": "2"},
        "requests": {"nvidia.com/gpu": "2", "cpu": "100m", "memory": "500Mi"},
    },
    "volumeMounts": [{"name": "nvsentinel-socket", "mountPath": "/var/run"}],
}
SOCKET: Tree = {"name": "nvsentinel-socket", "hostPath": {"path": "/var/run/nvsentinel", "type": "DirectoryOrCreate"}}
PREFLIGHT = [
    {"op": "add", "path": "/spec/initContainers", "value": [CHECK]},
    {"op": "add", "path": "/spec/volumes/-", "value": SOCKET},
]
"""As NVSentinel's preflight patches a pod of 2 GPUs, by patchInitContainers and injectVolumes in its injector.go."""


def created(installed: Installed, namespace: str, pod: Tree, added: str = "mesh") -> Tree:
    """The pod as it is stored, once the API server has heard of the webhook that adds that container."""

    def has_it() -> bool:
        answer = installed.create(pod, namespace, dry_run=True)
        return answer.code == 0 and f'"name": "{added}"' in answer.stdout

    installed.eventually(has_it, "the other webhook")
    answer = installed.create(pod, namespace)
    found: Tree = json.loads(answer.stdout)
    return found


@pytest.mark.parametrize("name", ["aa-mesh", "zzz-mesh"])
def test_the_pod_is_the_same_whoever_comes_first(
    installed: Installed, namespace: str, tmp_path: Path, name: str
) -> None:
    pod = gpu_pod("work", 2)
    pod["metadata"]["annotations"] = {"gpu-tiers.dev/checkpoint": "file"}
    with AnotherWebhook(installed.cluster, name, namespace, SIDECAR, tmp_path):
        found = created(installed, namespace, pod)
    assert found["metadata"]["annotations"]["gpu-tiers.dev/assigned-by"] == "policy-default: the policy's default"
    assert found["metadata"]["labels"]["gpu-tiers.dev/tier"] == "gpu-interactive"
    assert (found["spec"]["priorityClassName"], found["spec"]["priority"]) == ("gpu-interactive", 200)
    assert found["spec"]["preemptionPolicy"] == "Never"
    main, mesh = found["spec"]["containers"]
    assert [mount["name"] for mount in main["volumeMounts"]].count("gpu-tiers-checkpoint") == 1
    assert "lifecycle" in main
    assert "lifecycle" not in mesh


@pytest.mark.parametrize("name", ["preflight", "zzz-preflight"])
def test_checks_of_the_gpus_before_the_start_cost_no_quota(
    installed: Installed, namespace: str, tmp_path: Path, name: str
) -> None:
    """A pod counts the larger of its containers and its largest init container."""
    installed.tenant(namespace, namespace, quotas=[{"gpus": "2"}])
    pod = gpu_pod("work", 2)
    pod["metadata"]["annotations"] = {"gpu-tiers.dev/checkpoint": "file"}
    with AnotherWebhook(installed.cluster, name, namespace, PREFLIGHT, tmp_path):
        found = created(installed, namespace, pod, CHECK["name"])
    [check], [main] = found["spec"]["initContainers"], found["spec"]["containers"]
    assert "lifecycle" in main
    assert "lifecycle" not in check, "who is evicted while it is checked has nothing to save"
    assert (found["spec"]["priorityClassName"], found["spec"]["priority"]) == ("gpu-interactive", 200)
    installed.eventually(lambda: installed.usage(namespace) == "total 2/2", "2 GPUs and not 4")


def test_gpus_added_after_us_are_refused_not_let_through(installed: Installed, namespace: str, tmp_path: Path) -> None:
    """A webhook that was not called in the first pass is not called in the second: only validation sees this pod."""
    with AnotherWebhook(installed.cluster, "zzz-late", namespace, GPUS, tmp_path):
        installed.eventually(
            lambda: installed.create(gpu_pod("late", 0), namespace, dry_run=True).code == 1, "the refusal"
        )
        refused = installed.create(gpu_pod("late", 0), namespace)
    assert "tier gpu-interactive was not applied" in refused.stderr
    assert "another webhook changed the pod after gpu-tiers" in refused.stderr
