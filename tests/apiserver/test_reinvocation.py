"""gpu-tiers beside another mutating webhook, called before it and after it: the pod comes out the same."""

import json
from pathlib import Path

import pytest

from .another_webhook import AnotherWebhook
from .installed import Installed, Tree, gpu_pod

pytestmark = pytest.mark.apiserver

SIDECAR = [{"op": "add", "path": "/spec/containers/-", "value": {"name": "mesh", "image": "registry.example/mesh:1"}}]
GPUS = [{"op": "add", "path": "/spec/containers/0/resources", "value": {"limits": {"nvidia.com/gpu": "1"}}}]


def created(installed: Installed, namespace: str, pod: Tree) -> Tree:
    """The pod as it is stored, once the API server has heard of the other webhook."""

    def has_sidecar() -> bool:
        answer = installed.create(pod, namespace, "--dry-run=server", "--output=json")
        return answer.code == 0 and len(json.loads(answer.stdout)["spec"]["containers"]) > 1

    installed.eventually(has_sidecar, "the other webhook")
    answer = installed.create(pod, namespace, "--output=json")
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


def test_gpus_added_after_us_are_refused_not_let_through(installed: Installed, namespace: str, tmp_path: Path) -> None:
    """A webhook that was not called in the first pass is not called in the second: only validation sees this pod."""
    with AnotherWebhook(installed.cluster, "zzz-late", namespace, GPUS, tmp_path):
        installed.eventually(
            lambda: installed.create(gpu_pod("late", 0), namespace, "--dry-run=server").code == 1, "the refusal"
        )
        refused = installed.create(gpu_pod("late", 0), namespace)
    assert "tier gpu-interactive was not applied" in refused.stderr
    assert "another webhook changed the pod after gpu-tiers" in refused.stderr
